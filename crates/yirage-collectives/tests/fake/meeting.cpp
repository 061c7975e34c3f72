#include "meeting.hpp"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct Mailbox {
  bool full, taken;
  Signature signature;
  size_t bytes;
};

struct Meeting {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int ranks, joined, left;
  bool here[MOST_RANKS];
  // The rank whose abort or mismatch ends the meeting, and why.
  int failed;
  uint64_t round;
  int arrived, departed;
  Signature signatures[MOST_RANKS];
  size_t bytes[MOST_RANKS];
  Mailbox mail[MOST_RANKS][MOST_RANKS];
};

namespace {

const size_t HEAD = (sizeof(Meeting) + 4095) / 4096 * 4096;
const size_t WHOLE = HEAD + MOST_RANKS * SLOT + MOST_RANKS * MOST_RANKS * MAILBOX;

char* slot(Meeting* meeting, int rank) { return (char*)meeting + HEAD + rank * SLOT; }
char* mailbox(Meeting* meeting, int from, int to) {
  return slot(meeting, MOST_RANKS) + (from * MOST_RANKS + to) * MAILBOX;
}

struct Lock {
  Meeting* meeting;
  explicit Lock(Meeting* of) : meeting(of) { pthread_mutex_lock(&of->lock); }
  ~Lock() { pthread_mutex_unlock(&meeting->lock); }
};

void changed(Meeting* meeting) { pthread_cond_broadcast(&meeting->changed); }

// Looks again every few milliseconds: an abort of this rank wakes nobody.
template <class Ready>
bool wait(Place& place, Ready ready) {
  Meeting* all = place.meeting;
  while (!ready()) {
    if (place.aborted) return false;
    if (all->failed) {
      place.failed = REMOTE;
      return false;
    }
    timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 2000000;
    if (until.tv_nsec >= 1000000000) until.tv_sec += 1, until.tv_nsec -= 1000000000;
    pthread_cond_timedwait(&all->changed, &all->lock, &until);
  }
  return true;
}

bool fail(Place& place, const char* why) {
  fprintf(stderr, "fake collectives: rank %d: %s\n", place.rank, why);
  place.failed = REMOTE;
  place.meeting->failed = REMOTE;
  changed(place.meeting);
  return false;
}

std::string path_of(const std::string& identity) { return "/dev/shm/fake-collectives-" + identity; }

Meeting* map(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  const bool first = file >= 0;
  const int opened = first ? file : open(path.c_str(), O_RDWR);
  if (opened < 0 || (first && ftruncate(opened, off_t(WHOLE)))) return nullptr;
  // The first may not have made it as long yet.
  while (lseek(opened, 0, SEEK_END) < off_t(WHOLE)) usleep(1000);
  void* memory = mmap(nullptr, WHOLE, PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
  close(opened);
  if (memory == MAP_FAILED) return nullptr;
  Meeting* meeting = (Meeting*)memory;
  if (first) {
    pthread_mutexattr_t mutex;
    pthread_mutexattr_init(&mutex);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&meeting->lock, &mutex);
    pthread_condattr_t condition;
    pthread_condattr_init(&condition);
    pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(&meeting->changed, &condition);
    __atomic_store_n(&meeting->ranks, -1, __ATOMIC_RELEASE);
  }
  while (__atomic_load_n(&meeting->ranks, __ATOMIC_ACQUIRE) == 0) usleep(1000);
  return meeting;
}

bool equal(const Signature& a, const Signature& b) {
  return a.kind == b.kind && a.type == b.type && a.operation == b.operation && a.peer == b.peer && a.count == b.count;
}

}  // namespace

Place* join(const std::string& identity, int rank, int ranks, std::string& why) {
  const std::string path = path_of(identity);
  Meeting* meeting = map(path);
  if (!meeting) {
    why = "no shared memory";
    return nullptr;
  }
  Place* place = new Place{meeting, rank, ranks};
  {
    Lock lock(meeting);
    if (meeting->ranks == -1) meeting->ranks = ranks;
    if (meeting->ranks != ranks) why = "the ranks say different sizes of the group";
    else if (meeting->here[rank]) why = "a rank is there already";
    if (!why.empty()) {
      meeting->failed = INVALID;
      changed(meeting);
      delete place;
      return nullptr;
    }
    meeting->here[rank] = true;
    ++meeting->joined;
    changed(meeting);
    if (wait(*place, [&] { return meeting->joined == ranks; })) {
      // The group lives as long as somebody has it mapped.
      unlink(path.c_str());
      return place;
    }
  }
  why = "another rank could not join";
  unlink(path.c_str());
  munmap(meeting, WHOLE);
  delete place;
  return nullptr;
}

void leave(Place* place) {
  munmap(place->meeting, WHOLE);
  delete place;
}

bool meet(Place& place, const Signature& own, const void* give, size_t bytes,
          void (*use)(void* context, const std::vector<const char*>& all), void* context) {
  Meeting* all = place.meeting;
  if (bytes > SLOT) return fail(place, "more bytes than the fake has room for");
  const auto quiet = [&] { return all->departed == 0; };
  {
    Lock lock(all);
    // The one before may not have been left by all.
    if (!wait(place, quiet)) return false;
    all->signatures[place.rank] = own;
    all->bytes[place.rank] = bytes;
    memcpy(slot(all, place.rank), give, bytes);
    const uint64_t round = all->round;
    if (++all->arrived == place.ranks) {
      ++all->round;
      changed(all);
    }
    if (!wait(place, [&] { return all->round != round; })) return false;
    for (int rank = 0; rank < place.ranks; ++rank)
      if (!equal(own, all->signatures[rank])) return fail(place, "the ranks do not do the same");
  }
  std::vector<const char*> given;
  for (int rank = 0; rank < place.ranks; ++rank) given.push_back(slot(all, rank));
  use(context, given);
  Lock lock(all);
  if (++all->departed == place.ranks) all->departed = all->arrived = 0;
  changed(all);
  return true;
}

bool send(Place& place, const Signature& own, const void* give, size_t bytes, int to) {
  Meeting* all = place.meeting;
  if (bytes > MAILBOX) return fail(place, "more bytes than the fake has room for");
  Lock lock(all);
  Mailbox& mail = all->mail[place.rank][to];
  if (!wait(place, [&] { return !mail.full; })) return false;
  memcpy(mailbox(all, place.rank, to), give, bytes);
  mail.full = true;
  mail.taken = false;
  mail.bytes = bytes;
  mail.signature = own;
  changed(all);
  if (!wait(place, [&] { return mail.taken; })) return false;
  mail.full = false;
  changed(all);
  return true;
}

bool receive(Place& place, const Signature& own, void* get, size_t bytes, int from) {
  Meeting* all = place.meeting;
  Lock lock(all);
  Mailbox& mail = all->mail[from][place.rank];
  if (!wait(place, [&] { return mail.full && !mail.taken; })) return false;
  if (mail.bytes != bytes || mail.signature.type != own.type) return fail(place, "a message is of another length or type");
  memcpy(get, mailbox(all, from, place.rank), bytes);
  mail.taken = true;
  changed(all);
  return true;
}
