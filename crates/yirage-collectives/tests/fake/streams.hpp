// Streams: those of the fake, or those of a fake driver that has lent a function which puts work into one.
#pragma once

#include <functional>

// Puts work into a stream; false for a handle that is none.
bool put(void* stream, std::function<void()> work);
