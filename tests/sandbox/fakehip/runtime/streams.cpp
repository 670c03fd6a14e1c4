// Streams and events. A stream has work pending until something waits for it; only then may an event be asked.
#include "fakehip.h"

#include <time.h>

namespace fake {
namespace {

struct Event { bool live, recorded, complete; double at_ms; Stream* stream; };
enum { kStreams = 16, kEvents = 8192 };
Stream streams[kStreams], default_stream = {true, false};
Event events[kEvents];

double now_ms() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return double(now.tv_sec) * 1e3 + double(now.tv_nsec) * 1e-6;
}

Event* event_of(void* handle) {
  Event* const event = static_cast<Event*>(handle);
  return event >= events && event < events + kEvents && event->live ? event : nullptr;
}

int make_stream(const char* call, void** stream, unsigned flags) {
  for (Stream& one : streams)
    if (!one.live) {
      one = {true, false};
      *stream = &one;
      return done(call, Success, "flags=%u", flags);
    }
  return done(call, OutOfMemory);
}

}  // namespace

Stream* stream_of(void* handle) {
  if (!handle && registered()) return &default_stream;
  Stream* const stream = static_cast<Stream*>(handle);
  return stream >= streams && stream < streams + kStreams && stream->live ? stream : nullptr;
}

void complete(Stream* stream) {
  stream->pending = false;
  for (Event& event : events)
    if (event.live && event.recorded && event.stream == stream) event.complete = true;
}

void complete_all() {
  for (Stream& stream : streams)
    if (stream.live) complete(&stream);
  complete(&default_stream);
}

unsigned streams_held() {
  unsigned held = 0;
  for (const Stream& stream : streams) held += stream.live;
  return held;
}

unsigned events_held() {
  unsigned held = 0;
  for (const Event& event : events) held += event.live;
  return held;
}

}  // namespace fake

using namespace fake;

extern "C" {

int hipStreamCreate(void** stream) {
  BEGIN_ON_DEVICE(hipStreamCreate)
  return make_stream(call, stream, 0);
}

int hipStreamCreateWithFlags(void** stream, unsigned flags) {
  BEGIN_ON_DEVICE(hipStreamCreateWithFlags)
  return make_stream(call, stream, flags);
}

int hipStreamDestroy(void* handle) {
  BEGIN_ON_DEVICE(hipStreamDestroy)
  Stream* const stream = stream_of(handle);
  if (!stream) return misuse(call, InvalidHandle, "no such stream");
  stream->live = false;
  return done(call, Success);
}

int hipStreamSynchronize(void* handle) {
  BEGIN_ON_DEVICE(hipStreamSynchronize)
  if (!stream_of(handle)) return misuse(call, InvalidHandle, "no such stream");
  complete(stream_of(handle));
  return done(call, Success);
}

int hipDeviceSynchronize() {
  BEGIN_ON_DEVICE(hipDeviceSynchronize)
  complete_all();
  return done(call, Success);
}

int hipEventCreate(void** made) {
  BEGIN_ON_DEVICE(hipEventCreate)
  for (Event& event : events)
    if (!event.live) {
      event = {};
      event.live = true;
      *made = &event;
      return done(call, Success);
    }
  return done(call, OutOfMemory);
}

int hipEventDestroy(void* handle) {
  BEGIN_ON_DEVICE(hipEventDestroy)
  Event* const event = event_of(handle);
  if (!event) return misuse(call, InvalidHandle, "no such event");
  event->live = false;
  return done(call, Success);
}

int hipEventRecord(void* handle, void* stream) {
  BEGIN_ON_DEVICE(hipEventRecord)
  Event* const event = event_of(handle);
  if (!event || !stream_of(stream)) return misuse(call, InvalidHandle, "no such event or stream");
  event->recorded = true;
  event->complete = false;
  event->stream = stream_of(stream);
  stream_of(stream)->pending = true;
  event->at_ms = now_ms();
  return done(call, Success, "event=%d", int(event - events));
}

int hipEventSynchronize(void* handle) {
  BEGIN_ON_DEVICE(hipEventSynchronize)
  Event* const event = event_of(handle);
  if (!event || !event->recorded) return misuse(call, InvalidHandle, "an event that was not recorded");
  complete(event->stream);
  return done(call, Success, "event=%d", int(event - events));
}

int hipEventElapsedTime(float* milliseconds, void* first, void* second) {
  BEGIN_ON_DEVICE(hipEventElapsedTime)
  const Event *const start = event_of(first), *const stop = event_of(second);
  if (!start || !stop || !start->recorded || !stop->recorded)
    return misuse(call, InvalidHandle, "an event that was not recorded");
  if (!start->complete || !stop->complete) return misuse(call, NotReady, "before the stop event was waited for");
  *milliseconds = float((stop->at_ms - start->at_ms) * conf.event_factor);
  return done(call, Success, "events=%d,%d", int(start - events), int(stop - events));
}

}  // extern "C"
