// NVIDIA's words: the sources are written in them.
#pragma once

#define PLATFORM "CUDA"
#define COMPILER "NVRTC"
#define ERROR_NAME(cuda, hip) "CUDA_" cuda
