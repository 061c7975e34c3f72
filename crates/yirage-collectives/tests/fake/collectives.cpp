// The functions of a maker, by the types of its header. Each call is looked at: communicators and streams that are some, types,
// operations, ranks and addresses; what is wrong is counted, told and refused. What is right stands in the stream.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "meeting.hpp"
#include "streams.hpp"

// What tests ask.
struct FakeCollectivesStats {
  // Communicators now; all that were made; that were ended in order, and given up.
  uint64_t communicators, made, ended, aborted;
  // Calls of collectives and messages, those within a group, and groups.
  uint64_t calls, grouped, groups;
  // Calls that no program should make.
  uint64_t wrong;
};

namespace {

struct Communicator {
  Place* place;
  uint64_t submitted = 0;
  // What stands in streams.
  std::atomic<int> pending{0};
};

std::recursive_mutex guard;
FakeCollectivesStats counted;
int version = 21805;
// Calls of this name still to come until one fails, and with what.
std::string fail_call;
int fail_left = 0, fail_code = 0;

typedef std::shared_ptr<Communicator> Found;

std::map<void*, Found>& communicators() {
  static auto* all = new std::map<void*, Found>;
  return *all;
}

// Work of a group that is not ended, in order.
thread_local int depth = 0;
struct Grouped {
  void* stream;
  std::function<void()> work;
  bool message;
};
thread_local std::vector<Grouped> grouped;

int wrong(const char* call, const char* why) {
  std::lock_guard<std::recursive_mutex> lock(guard);
  ++counted.wrong;
  fprintf(stderr, "fake collectives: %s: %s\n", call, why);
  return INVALID;
}

int injected(const char* call) {
  std::lock_guard<std::recursive_mutex> lock(guard);
  if (fail_call != call || --fail_left != 0) return DONE;
  return fail_code;
}

Found found(void* handle) {
  std::lock_guard<std::recursive_mutex> lock(guard);
  auto at = communicators().find(handle);
  return at == communicators().end() ? nullptr : at->second;
}

// Puts work of a communicator into a stream: now, or with the others of its group.
int submit(const char* call, Found of, void* stream, bool message, std::function<void()> work) {
  ++of->pending;
  auto all = [of, work] {
    work();
    --of->pending;
  };
  {
    std::lock_guard<std::recursive_mutex> lock(guard);
    ++counted.calls;
    counted.grouped += depth > 0;
  }
  if (depth > 0) {
    grouped.push_back({stream, all, message});
    return DONE;
  }
  if (put(stream, all)) return DONE;
  --of->pending;
  return wrong(call, "the stream is none");
}

enum { ALL_REDUCE = 1, ALL_GATHER, REDUCE_SCATTER, BROADCAST, SEND, RECEIVE };

struct Job {
  Place* place;
  Signature signature;
  Element element;
  const char* from;
  char* to;
  void* stream;
};

void use(void* context, const std::vector<const char*>& all) {
  const Job& job = *(Job*)context;
  const size_t count = job.signature.count, bytes = bytes_of(job.element);
  switch (job.signature.kind) {
    case ALL_REDUCE: reduce(job.element, job.signature.operation, all, count, job.to); break;
    case ALL_GATHER:
      for (size_t rank = 0; rank < all.size(); ++rank) memcpy(job.to + rank * count * bytes, all[rank], count * bytes);
      break;
    case REDUCE_SCATTER: {
      std::vector<const char*> own;
      for (const char* part : all) own.push_back(part + job.place->rank * count * bytes);
      reduce(job.element, job.signature.operation, own, count, job.to);
      break;
    }
    case BROADCAST: memcpy(job.to, all[job.signature.peer], count * bytes); break;
  }
}

void run(const Job& job) {
  const int kind = job.signature.kind;
  const size_t bytes = job.signature.count * bytes_of(job.element);
  const size_t given = kind == REDUCE_SCATTER ? bytes * job.place->ranks : bytes;
  const size_t got = kind == ALL_GATHER ? bytes * job.place->ranks : bytes;
  Job own = job;
  if (kind != RECEIVE) own.from = (const char*)bytes_at(job.stream, job.from, given);
  if (kind != SEND) own.to = (char*)bytes_at(job.stream, job.to, got);
  if ((kind != RECEIVE && !own.from) || (kind != SEND && !own.to)) {
    wrong("a collective", "its bytes are not all in the device's memory");
    job.place->failed = SYSTEM;
    return;
  }
  switch (kind) {
    case SEND: send(*job.place, job.signature, own.from, bytes, job.signature.peer); break;
    case RECEIVE: receive(*job.place, job.signature, own.to, bytes, job.signature.peer); break;
    default: meet(*job.place, job.signature, own.from, given, use, &own);
  }
}

// A collective: `operation` is -1 where there is none, `peer` where nobody is named.
int collective(const char* call, int kind, const void* from, void* to, uint64_t count, int type, int operation, int peer,
               void* communicator, void* stream) {
  if (const int code = injected(call)) return code;
  const Found of = found(communicator);
  if (!of) return wrong(call, "the communicator is none, or was ended");
  const Element element = element_of(type);
  if (element == Element::NONE) return wrong(call, "the type is none");
  const bool reduces = kind == ALL_REDUCE || kind == REDUCE_SCATTER;
  if (reduces && (operation < 0 || operation >= OPERATIONS)) return wrong(call, "the operation is none");
  const bool names = kind == BROADCAST || kind == SEND || kind == RECEIVE;
  if (names && (peer < 0 || peer >= of->place->ranks)) return wrong(call, "the rank is none");
  if ((kind == SEND || kind == RECEIVE) && peer == of->place->rank) return wrong(call, "a message to itself");
  if (count == 0 || count > SLOT) return wrong(call, "the number of elements is none");
  if ((kind != RECEIVE && !from) || (kind != SEND && !to)) return wrong(call, "an address is none");
  const Signature signature = {kind, type, operation, peer, count, of->submitted++};
  Job job = {of->place, signature, element, (const char*)from, (char*)to, stream};
  return submit(call, of, stream, kind == SEND || kind == RECEIVE, [job] { run(job); });
}

std::string text_of(const char* bytes) {
  std::string text(bytes, strnlen(bytes, 64));
  const bool known = text.rfind("fake-", 0) == 0;
  return known ? text.substr(5) : std::string();
}

void new_identity(char* bytes, size_t size) {
  static std::atomic<unsigned> count{0};
  memset(bytes, 0x5a, size);
  memset(bytes, 0, 64);
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  snprintf(bytes, 64, "fake-%d-%ld-%u", int(getpid()), long(now.tv_nsec), ++count);
}

int make(const char* call, void** made, const char* identity, int rank, int ranks) {
  if (const int code = injected(call)) return code;
  if (!made || !identity) return wrong(call, "an address is none");
  if (ranks < 1 || ranks > MOST_RANKS || rank < 0 || rank >= ranks) return wrong(call, "the rank is none");
  const std::string name = text_of(identity);
  if (name.empty()) return wrong(call, "the identity is none");
  std::string why;
  Place* place = join(name, rank, ranks, why);
  if (!place) return wrong(call, why.c_str());
  std::lock_guard<std::recursive_mutex> lock(guard);
  static uintptr_t next = 0xc000;
  *made = (void*)++next;
  auto communicator = std::make_shared<Communicator>();
  communicator->place = place;
  communicators()[*made] = communicator;
  ++counted.made;
  return DONE;
}

int end(const char* call, void* handle, bool abort) {
  if (const int code = injected(call)) return code;
  const Found of = found(handle);
  if (!of) return wrong(call, "the communicator is none, or was ended");
  if (depth > 0) return wrong(call, "it is ended within a group");
  {
    std::lock_guard<std::recursive_mutex> lock(guard);
    communicators().erase(handle);
    ++(abort ? counted.aborted : counted.ended);
  }
  if (abort) of->place->aborted = true;
  while (of->pending > 0) usleep(1000);
  leave(of->place);
  return DONE;
}

int failed(void* handle, int* code) {
  const Found of = found(handle);
  if (!of) return wrong("the question for errors", "the communicator is none, or was ended");
  const int what = of->place->failed;
  *code = what ? what : of->pending > 0 ? int(IN_PROGRESS) : int(DONE);
  if (*code == -1) *code = DONE;
  return DONE;
}

const char* said(int code) {
  switch (code) {
    case DONE: return "no error";
    case INVALID: return "invalid argument";
    case REMOTE: return "remote process exited or there was a network error";
    case SYSTEM: return "unhandled system error";
    default: return "unknown error";
  }
}

}  // namespace

API void fakeCollectivesStats(FakeCollectivesStats* stats) {
  std::lock_guard<std::recursive_mutex> lock(guard);
  *stats = counted;
  stats->communicators = communicators().size();
}

API void fakeCollectivesFail(const char* call, int nth, int code) {
  std::lock_guard<std::recursive_mutex> lock(guard);
  fail_call = call, fail_left = nth, fail_code = code;
}

API void fakeCollectivesVersion(int said) { version = said; }

#define REDUCE(name, kind)                                                                                            \
  API int NAME(name)(const void* from, void* to, size_t count, int type, int operation, void* communicator, void* stream) { \
    return collective(__func__, kind, from, to, count, type, operation, -1, communicator, stream);                     \
  }

REDUCE(AllReduce, ALL_REDUCE)
REDUCE(ReduceScatter, REDUCE_SCATTER)

API int NAME(AllGather)(const void* from, void* to, size_t count, int type, void* communicator, void* stream) {
  return collective(__func__, ALL_GATHER, from, to, count, type, -1, -1, communicator, stream);
}

API int NAME(Send)(const void* from, size_t count, int type, int peer, void* communicator, void* stream) {
  return collective(__func__, SEND, from, nullptr, count, type, -1, peer, communicator, stream);
}

API int NAME(Recv)(void* to, size_t count, int type, int peer, void* communicator, void* stream) {
  return collective(__func__, RECEIVE, nullptr, to, count, type, -1, peer, communicator, stream);
}

#if defined(FAKE_HCCL)

API int HcclBroadcast(void* at, uint64_t count, int type, uint32_t root, void* communicator, void* stream) {
  return collective(__func__, BROADCAST, at, at, count, type, -1, int(root), communicator, stream);
}

API int HcclGetRootInfo(char* identity) {
  if (const int code = injected(__func__)) return code;
  new_identity(identity, 4108);
  return DONE;
}

API int HcclCommInitRootInfo(uint32_t ranks, const char* identity, uint32_t rank, void** made) {
  return make(__func__, made, identity, int(rank), int(ranks));
}

API int HcclCommDestroy(void* communicator) { return end(__func__, communicator, false); }
API int HcclGetCommAsyncError(void* communicator, int* code) { return failed(communicator, code); }
API const char* HcclGetErrorString(int code) { return said(code); }

#else

API int NAME(Broadcast)(const void* from, void* to, size_t count, int type, int root, void* communicator, void* stream) {
  return collective(__func__, BROADCAST, from, to, count, type, -1, root, communicator, stream);
}

#endif

#if defined(FAKE_CNCL)

struct Clique {
  char data[128];
  uint64_t hash;
};

API int cnclGetCliqueId(Clique* identity) {
  if (const int code = injected(__func__)) return code;
  if (uintptr_t(identity) % 8) return wrong(__func__, "the identity's address is no multiple of 8");
  new_identity(identity->data, sizeof identity->data);
  identity->hash = 0x636e636c;
  return DONE;
}

API int cnclInitComms(void** made, int count, const int* devices, const int* ranks, int all, const Clique* identity) {
  if (count != 1 || !devices || !ranks || *devices < 0) return wrong(__func__, "one device and one rank are wanted");
  if (!identity || uintptr_t(identity) % 8 || identity->hash != 0x636e636c) return wrong(__func__, "the identity is none");
  return make(__func__, made, identity->data, *ranks, all);
}

API int cnclFreeComm(void* communicator) { return end(__func__, communicator, false); }
API int cnclAbortComm(void* communicator) { return end(__func__, communicator, true); }
API int cnclGetCommAsyncError(void* communicator) {
  int code = DONE;
  const int asked = failed(communicator, &code);
  return asked ? asked : code;
}
API const char* cnclGetErrorStr(int code) { return said(code); }

#endif

#if defined(FAKE_NCCL) || defined(FAKE_MCCL)

struct Unique {
  char internal[128];
};

API int NAME(GetVersion)(int* found) {
  *found = version;
  return DONE;
}

API int NAME(GetUniqueId)(Unique* identity) {
  if (const int code = injected(__func__)) return code;
  new_identity(identity->internal, sizeof identity->internal);
  return DONE;
}

API int NAME(CommInitRank)(void** made, int ranks, Unique identity, int rank) {
  return make(__func__, made, identity.internal, rank, ranks);
}

API int NAME(CommDestroy)(void* communicator) { return end(__func__, communicator, false); }
API int NAME(CommAbort)(void* communicator) { return end(__func__, communicator, true); }
API int NAME(CommGetAsyncError)(void* communicator, int* code) { return failed(communicator, code); }
API const char* NAME(GetErrorString)(int code) { return said(code); }

API int NAME(GroupStart)() {
  if (const int code = injected(__func__)) return code;
  ++depth;
  return DONE;
}

// What a group has stands in the stream as one: messages of one do not wait for each other.
API int NAME(GroupEnd)() {
  if (depth == 0) return wrong(__func__, "no group was begun");
  if (--depth > 0) return DONE;
  {
    std::lock_guard<std::recursive_mutex> lock(guard);
    ++counted.groups;
  }
  auto all = std::move(grouped);
  grouped.clear();
  if (const int code = injected(__func__)) return code;
  if (all.empty()) return DONE;
  void* stream = all[0].stream;
  for (auto& one : all)
    if (one.stream != stream) return wrong(__func__, "the fake knows groups of one stream alone");
  const bool done = put(stream, [all] {
    // Messages at the same time, everything else in its order.
    std::vector<std::thread> threads;
    for (auto& one : all) {
      if (one.message)
        threads.emplace_back(one.work);
      else
        one.work();
    }
    for (auto& thread : threads) thread.join();
  });
  return done ? DONE : wrong(__func__, "the stream is none");
}

#endif
