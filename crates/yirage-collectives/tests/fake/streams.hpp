// Streams: those of the fake, or those of a fake driver that has lent a function which puts work into one.
#pragma once

#include <functional>

// Puts work into a stream; false for a handle that is none.
bool put(void* stream, std::function<void()> work);

// The bytes at an address of a stream's device: the address itself, but for a fake driver that has them elsewhere; null where not all
// of them are there.
void* bytes_at(void* stream, const void* address, size_t bytes);
