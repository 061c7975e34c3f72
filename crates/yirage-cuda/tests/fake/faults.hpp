// Running what may touch memory that is nobody's, and coming back where it does.
#pragma once

#include <functional>
#include <string>

// How an operation of a device ended. Without a code it ended well.
struct Outcome {
  int code = 0;
  std::string why;
};

// Signals of the process are watched from now on. Those that come elsewhere go where they went before.
void watch_signals();

// A stack for signals of this thread.
void prepare_thread();

// Runs it. A signal or a call of `land` ends it at once, with nothing on its stack destroyed.
// `describe` may say more of the place where a signal came.
Outcome run_guarded(const std::function<void()>& work, void (*describe)(char* text, size_t size, const char* why));

// Ends what runs now.
[[noreturn]] void land(const char* why);
