// MetaX's words, of its runtime and of its compiler in the same library. Types are those of HIP's. A context is retained and never
// released: its headers have no such function, so that here it keeps a name that nobody looks for.
#pragma once

#define PLATFORM "MACA"
#define COMPILER "MCRTC"
// Devices are named by their numbers in copies from one to another, and words of codes are returned.
#define PEERS_BY_NUMBER
#define WORDS_RETURNED
#define ERROR_NAME(cuda, hip) "mc" hip

#define cuInit mcInit
#define cuDriverGetVersion mcRuntimeGetVersion
#define cuDeviceGetCount mcGetDeviceCount
#define cuDeviceGet mcDeviceGet
#define cuDeviceGetName mcDeviceGetName
#define cuDeviceGetUuid_v2 mcDeviceGetUuid
#define cuDeviceTotalMem_v2 mcDeviceTotalMem
#define cuDeviceGetAttribute mcDeviceGetAttribute
#define cuDeviceGetPCIBusId mcDeviceGetPCIBusId
#define cuDevicePrimaryCtxRetain mcDevicePrimaryCtxRetain
#define cuCtxGetCurrent mcCtxGetCurrent
#define cuCtxSetCurrent mcCtxSetCurrent
#define cuMemGetInfo_v2 mcMemGetInfo
#define cuMemAlloc_v2 mcMalloc
#define cuMemFree_v2 mcFree
#define cuMemHostAlloc mcMallocHost
#define cuMemFreeHost mcFreeHost
#define cuMemcpyHtoDAsync_v2 mcMemcpyHtoDAsync
#define cuMemcpyDtoHAsync_v2 mcMemcpyDtoHAsync
#define cuMemcpyDtoDAsync_v2 mcMemcpyDtoDAsync
#define cuMemcpyPeerAsync mcMemcpyPeerAsync
#define cuMemsetD8Async mcMemsetAsync
#define cuStreamCreate mcStreamCreateWithFlags
#define cuStreamDestroy_v2 mcStreamDestroy
#define cuStreamSynchronize mcStreamSynchronize
#define cuStreamQuery mcStreamQuery
#define cuStreamWaitEvent mcStreamWaitEvent
#define cuEventCreate mcEventCreateWithFlags
#define cuEventDestroy_v2 mcEventDestroy
#define cuEventRecord mcEventRecord
#define cuEventQuery mcEventQuery
#define cuEventSynchronize mcEventSynchronize
#define cuEventElapsedTime mcEventElapsedTime
#define cuModuleLoadData mcModuleLoadData
#define cuModuleUnload mcModuleUnload
#define cuModuleGetFunction mcModuleGetFunction
#define cuFuncGetAttribute mcFuncGetAttribute
#define cuLaunchKernel mcModuleLaunchKernel
#define cuStreamBeginCapture_v2 mcStreamBeginCapture
#define cuStreamEndCapture mcStreamEndCapture
#define cuGraphInstantiateWithFlags mcGraphInstantiateWithFlags
#define cuGraphDestroy mcGraphDestroy
#define cuGraphExecDestroy mcGraphExecDestroy
#define cuGraphLaunch mcGraphLaunch
#define cuGetErrorName mcGetErrorName
#define cuGetErrorString mcGetErrorString

#define nvrtcVersion mcrtcVersion
#define nvrtcGetErrorString mcrtcGetErrorString
#define nvrtcCreateProgram mcrtcCreateProgram
#define nvrtcDestroyProgram mcrtcDestroyProgram
#define nvrtcCompileProgram mcrtcCompileProgram
#define nvrtcGetProgramLogSize mcrtcGetProgramLogSize
#define nvrtcGetProgramLog mcrtcGetProgramLog
#define nvrtcGetCUBINSize mcrtcGetBitcodeSize
#define nvrtcGetCUBIN mcrtcGetBitcode
