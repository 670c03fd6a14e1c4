"""A session with a callback for its events, and its candidates as a data frame.

Needs pandas: pip install 'kernel-scientist[frames]'
"""

from kernel_scientist.agents import Session


def show(event) -> None:
    """Called with every event as it is written to the run's record."""
    if event.kind == "evaluation_finished":
        print(f"#{event.seq} candidate {event.candidate_id}: {event.evaluation.verdict}")


result = Session("transpose", target="cpu", generations=1, experiments=2, observer=show).run()
print(result.status, "because", result.stop_reason)

frame = result.run.candidates_frame()
print(frame[["candidate", "parent", "verdict", "time_us", "speedup", "uplift"]].to_string(index=False))
print("the whole story:", result.run.path / "report.md")
