"""Reading what the agents of a run said and did, and laying two runs side by side.

Needs pandas: pip install 'kernel-scientist[frames]'
"""

from kernel_scientist.agents import Run, Session, list_runs
from kernel_scientist.agents.frames import candidates_frame

for generations in (1, 2):
    Session("transpose", target="cpu", generations=generations, experiments=1, seed=1).run()

run = Run.open("last")
for event in run.events():
    if event.kind == "message":
        print(f"#{event.seq} {event.agent}: {event.text[:100]}")
    elif event.kind == "passages_retrieved":
        print(f"#{event.seq} {event.agent} looked up {event.query!r}: {[one.id for one in event.passages]}")

frame = candidates_frame(list_runs(run.path.parent))
best = frame[frame["verdict"] == "accepted"].groupby("run")["speedup"].max()
print(best.to_string())
