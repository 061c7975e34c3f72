// Iluvatar's words: CUDA's, but that code is given by the call for assembly text.
#pragma once

#include "names_cuda.hpp"

#define nvrtcGetCUBINSize nvrtcGetPTXSize
#define nvrtcGetCUBIN nvrtcGetPTX
