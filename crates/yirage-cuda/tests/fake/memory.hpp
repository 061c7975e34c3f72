// Memory of devices and pinned memory of the host.
#pragma once

#include "machine.hpp"

// Whether all of a range lies in one buffer of this context.
bool is_held(const Context& context, Address address, size_t bytes);

// The buffer of this context that an address lies in, or none: where it begins.
Address buffer_of(const Context& context, Address address);

// Lets nobody touch buffers, or everybody again. They begin at these addresses, and those that are gone are passed over.
void withhold(const std::vector<Address>& buffers, bool withheld);

// Gives back all that a context has, and says how many buffers that were.
size_t free_all(const Context& context);
