// The emulator as a program: launches of the kernels that are linked to it, as they come through standard input.
//
// What a device would not tell ends the program with a word on why: an access beside a buffer, a write to one that is read, a
// thread that ends where others wait.
//
// A request: the length of the kernel's name and the name, a seed, the grid's three extents, and the number of buffers; of each,
// how many words it has, whether it is written, and the words. The answer: 0 and the words of all that are written, or the length
// of a text and the text, behind which the program ends. All numbers are words of 32 bits in the processor's order.
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "grid.hpp"

namespace emulator {
namespace {

const unsigned int SECONDS = 300;

const Kernel* kernels;

void put(const void* bytes, size_t count) {
  for (const char* at = (const char*)bytes; count > 0;) {
    const ssize_t done = write(1, at, count);
    if (done <= 0) _exit(1);
    at += done;
    count -= size_t(done);
  }
}

bool take(void* bytes, size_t count) {
  for (char* at = (char*)bytes; count > 0;) {
    const ssize_t done = read(0, at, count);
    if (done <= 0) return false;
    at += done;
    count -= size_t(done);
  }
  return true;
}

Word take_word() {
  Word word;
  if (!take(&word, sizeof word)) _exit(1);
  return word;
}

void on_signal(int number) {
  switch (number) {
    case SIGSEGV:
    case SIGBUS: fail("an access beside a buffer or to one that is read only");
    case SIGALRM: fail("it runs for too long");
    default: fail("an operation that has no value in C++");
  }
}

void watch_signals() {
  static char stack[1 << 16];
  stack_t own = {};
  own.ss_sp = stack;
  own.ss_size = sizeof stack;
  sigaltstack(&own, nullptr);
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK;
  for (int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGALRM}) sigaction(number, &action, nullptr);
}

// A buffer that ends where its memory does, so that the word behind it is nobody's.
struct Guarded {
  char* memory;
  size_t pages, bytes;
  bool written;

  Guarded() {
    bytes = size_t(take_word()) * sizeof(Word);
    written = take_word() != 0;
    pages = (bytes + PAGE - 1) / PAGE * PAGE;
    memory = map(pages + 2 * PAGE);
    mprotect(memory, PAGE, PROT_NONE);
    mprotect(memory + PAGE + pages, PAGE, PROT_NONE);
    if (!take(words(), bytes)) _exit(1);
    if (!written && pages) mprotect(memory + PAGE, pages, PROT_READ);
  }
  char* words() { return memory + PAGE + pages - bytes; }
  void free() { munmap(memory, pages + 2 * PAGE); }
};

void serve_launch(Word length) {
  std::vector<char> name(length + 1, 0);
  if (!take(name.data(), length)) _exit(1);
  const Kernel* kernel = kernels;
  while (kernel && strcmp(kernel->name, name.data())) kernel = kernel->next;
  const Word seed = take_word();
  const Word x = take_word(), y = take_word(), z = take_word();
  std::vector<Guarded> guarded(take_word());
  std::vector<Buffer> bound;
  for (Guarded& buffer : guarded) bound.push_back({buffer.words()});
  if (!kernel) failed("there is no such kernel");
  alarm(SECONDS);
  run_grid({kernel->name, kernel->run, bound.data(), kernel->threads, {x, y, z}, seed});
  alarm(0);
  const Word done = 0;
  put(&done, sizeof done);
  for (Guarded& buffer : guarded) {
    if (buffer.written) put(buffer.words(), buffer.bytes);
    buffer.free();
  }
}

}  // namespace

void failed(const char* text) {
  const Word answer = Word(strlen(text));
  put(&answer, sizeof answer);
  put(text, answer);
  _exit(1);
}

Kernel::Kernel(const char* name, Word threads, void (*run)(const Buffer*)) : name(name), threads(threads), run(run), next(kernels) {
  kernels = this;
}

}  // namespace emulator

int main() {
  emulator::watch_signals();
  emulator::Word length;
  while (emulator::take(&length, sizeof length)) emulator::serve_launch(length);
  return 0;
}
