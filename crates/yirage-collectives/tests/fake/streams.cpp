#include "streams.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "names.hpp"

namespace {

struct Stream {
  std::mutex lock;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  size_t put = 0, done = 0;
  unsigned drawn = 1;
};

std::mutex table_lock;
std::map<void*, std::shared_ptr<Stream>>& streams() {
  static auto* all = new std::map<void*, std::shared_ptr<Stream>>;
  return *all;
}

// The driver's function: it runs what it is given when the stream comes to it.
int (*driver)(void* stream, void (*work)(void*), void* context) = nullptr;

// The driver's function: where the bytes of its device's memory lie.
void* (*memory)(void* stream, const void* address, uint64_t bytes) = nullptr;

void serve(std::shared_ptr<Stream> stream) {
  for (;;) {
    std::unique_lock<std::mutex> lock(stream->lock);
    stream->changed.wait(lock, [&] { return !stream->queue.empty(); });
    auto work = std::move(stream->queue.front());
    stream->queue.pop_front();
    stream->drawn = stream->drawn * 1664525 + 1013904223;
    const unsigned delay = stream->drawn >> 24;
    lock.unlock();
    if (!work) return;
    // A quarter of what is submitted runs late.
    if (delay < 64) usleep(delay * 10);
    work();
    lock.lock();
    ++stream->done;
    stream->changed.notify_all();
  }
}

void run(void* context) {
  std::unique_ptr<std::function<void()>> work((std::function<void()>*)context);
  (*work)();
}

std::shared_ptr<Stream> found(void* handle) {
  std::lock_guard<std::mutex> lock(table_lock);
  auto at = streams().find(handle);
  return at == streams().end() ? nullptr : at->second;
}

}  // namespace

bool put(void* handle, std::function<void()> work) {
  if (driver) return driver(handle, run, new std::function<void()>(std::move(work))) == 0;
  auto stream = found(handle);
  if (!stream) return false;
  std::lock_guard<std::mutex> lock(stream->lock);
  stream->queue.push_back(std::move(work));
  ++stream->put;
  stream->changed.notify_all();
  return true;
}

void* bytes_at(void* stream, const void* address, size_t bytes) {
  return memory ? memory(stream, address, bytes) : const_cast<void*>(address);
}

API void fakeCollectivesMemory(void* (*at)(void*, const void*, uint64_t)) { memory = at; }

API void fakeCollectivesDriver(int (*enqueue)(void*, void (*)(void*), void*)) { driver = enqueue; }

API void* fakeCollectivesNewStream(unsigned seed) {
  auto stream = std::make_shared<Stream>();
  stream->drawn = seed;
  std::lock_guard<std::mutex> lock(table_lock);
  static uintptr_t next = 0x5000;
  void* handle = (void*)++next;
  streams()[handle] = stream;
  std::thread(serve, stream).detach();
  return handle;
}

// Whether all that was put into it is done within so many milliseconds.
API int fakeCollectivesWait(void* handle, int milliseconds) {
  auto stream = found(handle);
  if (!stream) return 0;
  std::unique_lock<std::mutex> lock(stream->lock);
  return stream->changed.wait_for(lock, std::chrono::milliseconds(milliseconds),
                                  [&] { return stream->done == stream->put; });
}

API void fakeCollectivesDropStream(void* handle) {
  put(handle, nullptr);
  std::lock_guard<std::mutex> lock(table_lock);
  streams().erase(handle);
}
