// Memory of devices and pinned memory of the host.
#pragma once

#include "machine.hpp"

// Whether all of a range lies in one buffer of this context.
bool is_held(const Context& context, Address address, size_t bytes);

// Gives back all that a context has, and says how many buffers that were.
size_t free_all(const Context& context);
