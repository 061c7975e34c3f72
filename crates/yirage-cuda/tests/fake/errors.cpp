// Names and texts of codes.
#include <algorithm>
#include <iterator>

#include "api.hpp"

namespace {

struct Text {
  Code code;
  const char *name, *text;
};

const Text TEXTS[] = {
    {SUCCESS, ERROR_NAME("SUCCESS", "Success"), "no error"},
    {INVALID_VALUE, ERROR_NAME("ERROR_INVALID_VALUE", "ErrorInvalidValue"), "invalid argument"},
    {OUT_OF_MEMORY, ERROR_NAME("ERROR_OUT_OF_MEMORY", "ErrorOutOfMemory"), "out of memory"},
    {NOT_INITIALIZED, ERROR_NAME("ERROR_NOT_INITIALIZED", "ErrorNotInitialized"), "initialization error"},
#ifdef FAKE_VENDOR_HIP
    {INVALID_CONFIGURATION, "hipErrorInvalidConfiguration", "invalid configuration argument"},
#endif
    {NO_DEVICE, ERROR_NAME("ERROR_NO_DEVICE", "ErrorNoDevice"), "no " PLATFORM "-capable device is detected"},
    {INVALID_DEVICE, ERROR_NAME("ERROR_INVALID_DEVICE", "ErrorInvalidDevice"), "invalid device ordinal"},
    {INVALID_IMAGE, ERROR_NAME("ERROR_INVALID_IMAGE", "ErrorInvalidImage"), "device kernel image is invalid"},
    {INVALID_CONTEXT, ERROR_NAME("ERROR_INVALID_CONTEXT", "ErrorInvalidContext"), "invalid device context"},
    {NO_BINARY_FOR_GPU, ERROR_NAME("ERROR_NO_BINARY_FOR_GPU", "ErrorNoBinaryForGpu"),
     "no kernel image is available for execution on the device"},
    {INVALID_HANDLE, ERROR_NAME("ERROR_INVALID_HANDLE", "ErrorInvalidHandle"), "invalid resource handle"},
    {ILLEGAL_STATE, ERROR_NAME("ERROR_ILLEGAL_STATE", "ErrorIllegalState"),
     "the operation cannot be performed in the present state"},
    {NOT_FOUND, ERROR_NAME("ERROR_NOT_FOUND", "ErrorNotFound"), "named symbol not found"},
    {NOT_READY, ERROR_NAME("ERROR_NOT_READY", "ErrorNotReady"), "device not ready"},
    {ILLEGAL_ADDRESS, ERROR_NAME("ERROR_ILLEGAL_ADDRESS", "ErrorIllegalAddress"), "an illegal memory access was encountered"},
    {LAUNCH_OUT_OF_RESOURCES, ERROR_NAME("ERROR_LAUNCH_OUT_OF_RESOURCES", "ErrorLaunchOutOfResources"),
     "too many resources requested for launch"},
    {CONTEXT_IS_DESTROYED, ERROR_NAME("ERROR_CONTEXT_IS_DESTROYED", "ErrorContextIsDestroyed"), "context is destroyed"},
    {LAUNCH_FAILED, ERROR_NAME("ERROR_LAUNCH_FAILED", "ErrorLaunchFailure"), "unspecified launch failure"},
    {NOT_SUPPORTED, ERROR_NAME("ERROR_NOT_SUPPORTED", "ErrorNotSupported"), "operation not supported"},
    {STREAM_CAPTURE_UNSUPPORTED, ERROR_NAME("ERROR_STREAM_CAPTURE_UNSUPPORTED", "ErrorStreamCaptureUnsupported"),
     "operation not permitted when stream is capturing"},
    {STREAM_CAPTURE_INVALIDATED, ERROR_NAME("ERROR_STREAM_CAPTURE_INVALIDATED", "ErrorStreamCaptureInvalidated"),
     "operation failed due to a previous error during capture"},
    {STREAM_CAPTURE_MERGE, ERROR_NAME("ERROR_STREAM_CAPTURE_MERGE", "ErrorStreamCaptureMerge"),
     "operation would result in a merge of separate capture sequences"},
    {STREAM_CAPTURE_UNMATCHED, ERROR_NAME("ERROR_STREAM_CAPTURE_UNMATCHED", "ErrorStreamCaptureUnmatched"),
     "capture was not ended in the same stream as it began"},
    {STREAM_CAPTURE_UNJOINED, ERROR_NAME("ERROR_STREAM_CAPTURE_UNJOINED", "ErrorStreamCaptureUnjoined"),
     "capturing stream has unjoined work"},
    {STREAM_CAPTURE_ISOLATION, ERROR_NAME("ERROR_STREAM_CAPTURE_ISOLATION", "ErrorStreamCaptureIsolation"),
     "dependency created on uncaptured work in another stream"},
    {CAPTURED_EVENT, ERROR_NAME("ERROR_CAPTURED_EVENT", "ErrorCapturedEvent"),
     "operation not permitted on an event last recorded in a capturing stream"},
    {STREAM_CAPTURE_WRONG_THREAD, ERROR_NAME("ERROR_STREAM_CAPTURE_WRONG_THREAD", "ErrorStreamCaptureWrongThread"),
     "attempt to terminate a thread-local capture sequence from another thread"},
};

const Text* text_of(int code) {
  const auto found = std::find_if(std::begin(TEXTS), std::end(TEXTS), [&](const Text& one) { return one.code == code; });
  return found == std::end(TEXTS) ? nullptr : found;
}

}  // namespace

#ifdef WORDS_RETURNED
API const char* cuGetErrorName(int code) {
  const Text* text = text_of(code);
  return text ? text->name : nullptr;
}

API const char* cuGetErrorString(int code) {
  const Text* text = text_of(code);
  return text ? text->text : nullptr;
}
#else
API int cuGetErrorName(int code, const char** name) {
  const Text* text = text_of(code);
  *name = text ? text->name : nullptr;
  return text ? SUCCESS : INVALID_VALUE;
}

API int cuGetErrorString(int code, const char** words) {
  const Text* text = text_of(code);
  *words = text ? text->text : nullptr;
  return text ? SUCCESS : INVALID_VALUE;
}
#endif
