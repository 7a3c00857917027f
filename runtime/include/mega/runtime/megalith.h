/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C interface of the Megalith runtime: load a bundle, bind weights, step.
 *
 * Life of a program:
 *
 *   megalith_bundle_load -> megalith_instance_create
 *     -> megalith_bind_safetensors (or megalith_bind_weight, tensor by tensor)
 *     -> megalith_set_state, megalith_set_position (a prompt's state; optional)
 *     -> megalith_step, once a token
 *     -> megalith_instance_destroy, megalith_bundle_free
 *
 * Errors. Every function that can fail returns a megalith_status. On any other
 * value than MEGALITH_OK the message is in megalith_last_error(), out
 * parameters are untouched, and the bundle or instance is as it was before the
 * call. Null handles, names and out parameters are MEGALITH_INVALID_ARGUMENT.
 * A function's comment lists the other values it returns.
 *
 * Ownership. Handles belong to the caller, who frees them. Pointers that the
 * library hands out (names, texts) belong to the handle they came from. Memory
 * that the caller passes in is read or written during the call only, but for
 * the vectors of megalith_step, which must stay until the step is done, and
 * the memory of megalith_bind_state.
 *
 * Sharing. A bundle is immutable. An instance has a workspace, states and a
 * position of its own; its kernel and weights may be shared with other
 * instances (megalith_instance_share). So one bundle serves any number of
 * sequences at once: bind the weights once, have an instance a sequence, and
 * step each on a stream of its own. Steps of instances that share a device
 * take turns on it, since a step fills the device.
 *
 * Threads. A bundle may be used from any number of threads. An instance may be
 * used from any thread, by one thread at a time; different instances, also
 * those that share weights, by different threads at once. The last error is
 * kept per thread.
 *
 * Devices. An instance lives in its device's primary context (the one of the
 * CUDA runtime API); every call restores the caller's current context.
 *
 * Streams are CUstream / cudaStream_t values, passed as void *; NULL is the
 * legacy default stream. Only megalith_step is asynchronous. Functions that
 * touch device memory from the host first wait for all work of the context, so
 * none but megalith_step and plain queries may be called while a stream is
 * being captured.
 *
 * Vectors and tensors are contiguous, row-major, last index fastest. Sizes are
 * in bytes, unless the name says rows. U8 is one byte, I32 and F32 four, BF16
 * two (the upper half of an F32), all little-endian.
 *
 * Environment. MEGALITH_JIT=off runs nothing but the cubins of a bundle (see
 * megalith_instance_create). MEGALITH_CACHE is the folder of images compiled
 * here, empty for none; by default $XDG_CACHE_HOME/megalith, else
 * $HOME/.cache/megalith. MEGALITH_NVRTC names the NVRTC library to use.
 */
#ifndef MEGA_RUNTIME_MEGALITH_H
#define MEGA_RUNTIME_MEGALITH_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define MEGALITH_API __attribute__((visibility("default")))
#else
#define MEGALITH_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Version of this header. Functions and values are only ever added within a
 * major version (from 1 on; below, a minor version may change them, and the
 * library's SONAME with it).
 */
#define MEGALITH_VERSION_MAJOR 0
#define MEGALITH_VERSION_MINOR 1
#define MEGALITH_VERSION_PATCH 0
/** The same as one number, to compare: 10000 * major + 100 * minor + patch. */
#define MEGALITH_VERSION                                                       \
  (10000 * MEGALITH_VERSION_MAJOR + 100 * MEGALITH_VERSION_MINOR +             \
   MEGALITH_VERSION_PATCH)

/** The largest rank of any tensor the interface describes. */
#define MEGALITH_MAX_RANK 8

/** The outcome of a call. The values are part of the ABI. */
typedef enum megalith_status {
  MEGALITH_OK = 0,
  /** An argument that no bundle could make right: null, misaligned, size. */
  MEGALITH_INVALID_ARGUMENT = 1,
  /** A name that the bundle or file does not have. */
  MEGALITH_NOT_FOUND = 2,
  /** A file that cannot be opened, read or written. */
  MEGALITH_IO_ERROR = 3,
  /** A file whose contents break its format. */
  MEGALITH_BAD_FORMAT = 4,
  /** A bundle of a newer format version. */
  MEGALITH_UNSUPPORTED_VERSION = 5,
  /** A tensor whose dtype, shape or values are not what the bundle wants. */
  MEGALITH_MISMATCH = 6,
  /** libcuda.so.1 could not be opened; everything but launching works. */
  MEGALITH_NO_DRIVER = 7,
  /** No such device, or the bundle has no kernel for it. */
  MEGALITH_NO_KERNEL = 8,
  /** The device or host lacks memory, shared memory or resident CTAs. */
  MEGALITH_RESOURCE_LIMIT = 9,
  /** Weights or caches that a step needs are not bound yet. */
  MEGALITH_NOT_READY = 10,
  /** A position or row count above the cache capacity. */
  MEGALITH_CAPACITY = 11,
  /** A CUDA driver call failed; the message has its name and error. */
  MEGALITH_DRIVER_ERROR = 12,
  /** A defect of the runtime itself. */
  MEGALITH_INTERNAL = 13,
  /** The device was not done in time; the message says where it is. */
  MEGALITH_TIMEOUT = 14
} megalith_status;

/** Element types. The values are part of the ABI. */
typedef enum megalith_dtype {
  MEGALITH_U8 = 0,
  MEGALITH_I32 = 1,
  MEGALITH_BF16 = 2,
  MEGALITH_F32 = 3,
  /** No type: makes any 32-bit value passed by mistake a defined one. */
  MEGALITH_DTYPE_RANGE = 0x7fffffff
} megalith_dtype;

/** A tensor as the bundle describes it. */
typedef struct megalith_tensor_info {
  /** Lives as long as the bundle; "" for the input and the output. */
  const char *name;
  megalith_dtype dtype;
  int32_t rank;
  /** The first `rank` entries; shape[0] of a cache is -1 (rows grow). */
  int64_t shape[MEGALITH_MAX_RANK];
} megalith_tensor_info;

typedef struct megalith_bundle megalith_bundle;
typedef struct megalith_instance megalith_instance;

/** Where an instance's machine code comes from. The values are part of the
 * ABI. */
typedef enum megalith_origin {
  /** A cubin of the bundle. */
  MEGALITH_ORIGIN_CUBIN = 0,
  /** The bundle's PTX, compiled by the driver. */
  MEGALITH_ORIGIN_PTX = 1,
  /** The bundle's kernel.cu, compiled by NVRTC. */
  MEGALITH_ORIGIN_COMPILED = 2,
  /** The same, compiled by an earlier process and kept. */
  MEGALITH_ORIGIN_CACHED = 3
} megalith_origin;

/** What an instance runs on. */
typedef struct megalith_instance_info {
  /** Both live as long as the instance: "NVIDIA H200", and "sm_90a" or
   * "compute_80". */
  const char *device_name;
  const char *arch;
  /** The CUDA device, as megalith_instance_create was told. */
  int32_t device;
  megalith_origin origin;
  /** The launch: CTAs, threads a CTA, bytes of dynamic shared memory a CTA. */
  int32_t ctas;
  int32_t threads;
  int32_t shared_bytes;
} megalith_instance_info;

/** MEGALITH_VERSION of the library in use. Never fails. */
MEGALITH_API uint32_t megalith_version(void);

/** The same as "major.minor.patch"; lives for ever. Never fails. */
MEGALITH_API const char *megalith_version_string(void);

/** The newest format version of a bundle that this library reads. Never
 * fails. */
MEGALITH_API uint32_t megalith_bundle_format(void);

/** The name of a status, such as "MEGALITH_NOT_FOUND"; "unknown status" for a
 * value that is none. Lives for ever. Never fails. */
MEGALITH_API const char *megalith_status_name(megalith_status status);

/** Bytes of one element, 0 for a value that is no dtype. Never fails. */
MEGALITH_API size_t megalith_dtype_bytes(megalith_dtype dtype);

/**
 * The message of this thread's last failed call; "" before any. Valid until
 * the thread's next failing call. Never null.
 */
MEGALITH_API const char *megalith_last_error(void);

/**
 * Reads and checks `path`/manifest.json; needs no GPU. The caller frees
 * `*bundle`. No contents of the folder can do more than make this or a later
 * call fail; but a kernel runs with all rights of the process on the device, so
 * run only kernels that you would run anyway. IO_ERROR, BAD_FORMAT,
 * UNSUPPORTED_VERSION (a newer format).
 */
MEGALITH_API megalith_status megalith_bundle_load(const char *path,
                                                  megalith_bundle **bundle);

/** Frees a bundle. Instances made from it stay valid. Null is allowed. */
MEGALITH_API megalith_status megalith_bundle_free(megalith_bundle *bundle);

/** The manifest's JSON text; lives as long as the bundle. */
MEGALITH_API megalith_status
megalith_bundle_manifest(const megalith_bundle *bundle, const char **text);

/** The block's name; lives as long as the bundle. */
MEGALITH_API megalith_status
megalith_bundle_block(const megalith_bundle *bundle, const char **name);

/** Dtype and shape of the hidden vector in; its name is "". */
MEGALITH_API megalith_status megalith_bundle_input(
    const megalith_bundle *bundle, megalith_tensor_info *info);

/** Dtype and shape of the hidden vector out; its name is "". */
MEGALITH_API megalith_status megalith_bundle_output(
    const megalith_bundle *bundle, megalith_tensor_info *info);

/** Number of checkpoint tensors that must be bound. */
MEGALITH_API megalith_status
megalith_bundle_tensor_count(const megalith_bundle *bundle, size_t *count);

/** Checkpoint tensor `index`, in the manifest's order, under the name and with
 * the shape that it has in the checkpoint. NOT_FOUND: index out of range. */
MEGALITH_API megalith_status megalith_bundle_tensor(
    const megalith_bundle *bundle, size_t index, megalith_tensor_info *info);

/** Number of states. */
MEGALITH_API megalith_status
megalith_bundle_state_count(const megalith_bundle *bundle, size_t *count);

/** State `index`, in the manifest's order. A shape that starts with -1 is a
 * cache: a row a token. NOT_FOUND: index out of range. */
MEGALITH_API megalith_status megalith_bundle_state(
    const megalith_bundle *bundle, size_t index, megalith_tensor_info *info);

/** Number of probes: workspace values left for inspection by each step. */
MEGALITH_API megalith_status
megalith_bundle_probe_count(const megalith_bundle *bundle, size_t *count);

/** Probe `index`, in the manifest's order. NOT_FOUND: index out of range. */
MEGALITH_API megalith_status megalith_bundle_probe(
    const megalith_bundle *bundle, size_t index, megalith_tensor_info *info);

/**
 * Makes an instance on CUDA device `device`: loads an image that fits, checks
 * that one CTA an SM can be co-resident, and allocates the weight arena, the
 * workspace and the states, zeroed. Position is 0. The caller destroys
 * `*instance`.
 *
 * The image is the bundle's cubin for the device if it has one; else its PTX,
 * which the driver compiles (and keeps in the driver's own cache); else what
 * NVRTC makes of its kernel.cu, which is kept in the user's cache directory by
 * content, and found there by later processes.
 *
 * `cache_capacity_rows` is the number of rows allocated for every cache, so
 * the most tokens the instance can hold. 0 allocates no cache: then each must
 * be bound with megalith_bind_state before the first step. For a block
 * without caches it only bounds the position, and 0 means no bound.
 *
 * NO_DRIVER, NO_KERNEL, RESOURCE_LIMIT, IO_ERROR and BAD_FORMAT (the cubin),
 * DRIVER_ERROR.
 */
MEGALITH_API megalith_status megalith_instance_create(
    const megalith_bundle *bundle, int device, int64_t cache_capacity_rows,
    megalith_instance **instance);

/**
 * Makes another instance with the kernel and weights of `instance`, and a
 * workspace, states and position of its own, as megalith_instance_create does.
 * Weights bound through either are bound for both; they live until the last
 * instance that has them is destroyed, in any order. Both may be used by
 * different threads at once, also this function on one `instance`.
 *
 * RESOURCE_LIMIT, INVALID_ARGUMENT (rows below 0), DRIVER_ERROR.
 */
MEGALITH_API megalith_status megalith_instance_share(
    const megalith_instance *instance, int64_t cache_capacity_rows,
    megalith_instance **shared);

/** Device, image and launch shape. */
MEGALITH_API megalith_status megalith_instance_get_info(
    const megalith_instance *instance, megalith_instance_info *info);

/**
 * Waits for the context's work and frees everything but caller-owned states.
 * Null is allowed. If the work does not end within the watchdog's time, the
 * instance's device memory and kernel are left behind, since freeing them would
 * wait, too.
 */
MEGALITH_API megalith_status
megalith_instance_destroy(megalith_instance *instance);

/**
 * Gives one checkpoint tensor. `data` (host, `bytes` bytes, any alignment) is
 * copied and not kept. A packed region is uploaded by the call that gives its
 * last tensor. dtype and shape must be the manifest's; zero points must be
 * integers in 0..15; a tensor can be bound once.
 *
 * NOT_FOUND, MISMATCH, INVALID_ARGUMENT (size; bound before), DRIVER_ERROR.
 */
MEGALITH_API megalith_status megalith_bind_weight(
    megalith_instance *instance, const char *tensor, megalith_dtype dtype,
    int32_t rank, const int64_t *shape, const void *data, size_t bytes);

/** A checkpoint tensor in host memory. */
typedef struct megalith_weight {
  /** The manifest's name. */
  const char *name;
  /** Any alignment. */
  const void *data;
  size_t bytes;
  /** `rank` entries; may be null if rank is 0. */
  const int64_t *shape;
  int32_t rank;
  megalith_dtype dtype;
} megalith_weight;

/**
 * Gives `count` checkpoint tensors, all or nothing; else as
 * megalith_bind_weight for each. If they are all that is missing, none is
 * copied on the host, so this is the fastest way to bind a whole checkpoint
 * that is in memory.
 *
 * Errors of megalith_bind_weight; INVALID_ARGUMENT too for a name given twice.
 */
MEGALITH_API megalith_status megalith_bind_weights(
    megalith_instance *instance, const megalith_weight *weights, size_t count);

/**
 * Gives every tensor of a safetensors file that the bundle wants, looking for
 * `prefix` followed by the manifest's name (`prefix` may be null: none). Other
 * tensors of the file are skipped, so shards and whole checkpoints work; a
 * file without any wanted tensor is NOT_FOUND. The file is mapped, not read
 * into memory; do not truncate it while regions it feeds are incomplete.
 *
 * Errors of megalith_bind_weight, IO_ERROR, BAD_FORMAT. All or nothing.
 */
MEGALITH_API megalith_status megalith_bind_safetensors(
    megalith_instance *instance, const char *path, const char *prefix);

/** OK, or NOT_READY with a message that lists the missing tensors (the first
 * 16). */
MEGALITH_API megalith_status
megalith_weights_ready(megalith_instance *instance);

/**
 * Copies a state from the host. A fixed state needs all its bytes; a cache
 * takes any whole number of rows up to the capacity, written from row 0 in
 * place. Does not move the position. NOT_FOUND, INVALID_ARGUMENT, CAPACITY,
 * NOT_READY (cache has no memory), DRIVER_ERROR.
 */
MEGALITH_API megalith_status megalith_set_state(megalith_instance *instance,
                                                const char *name,
                                                const void *data, size_t bytes);

/** Copies a state to the host; sizes and errors as megalith_set_state. */
MEGALITH_API megalith_status megalith_get_state(megalith_instance *instance,
                                                const char *name, void *data,
                                                size_t bytes);

/**
 * Makes `device_pointer` (16-byte aligned) the state's memory, in place of
 * what the instance allocated, which is freed. It stays the caller's and must
 * outlive the steps that use it. Contents are taken as they are. Waits only if
 * it frees: a launched step keeps the addresses it was launched with, so a
 * caller may switch between several sequences' states without waiting.
 *
 * `bytes` is its size: at least the state's for a fixed one; for a cache it
 * sets how many rows fit, at least one and no fewer than the position. The
 * instance's capacity is the smallest of its caches'.
 *
 * NOT_FOUND, INVALID_ARGUMENT, CAPACITY (fewer rows than the position).
 */
MEGALITH_API megalith_status megalith_bind_state(megalith_instance *instance,
                                                 const char *name,
                                                 void *device_pointer,
                                                 size_t bytes);

/**
 * Gives every state its memory and sets the position, all or nothing and in one
 * call: for a caller who switches between sequences. Entry i of both arrays, of
 * `count` entries each, is for state i in the manifest's order (which
 * megalith_bundle_state tells) and is as in megalith_bind_state; a cache needs
 * at least `position` rows. The arrays are read during the call only.
 *
 * INVALID_ARGUMENT (also if `count` is not the bundle's), CAPACITY.
 */
MEGALITH_API megalith_status megalith_bind_states(megalith_instance *instance,
                                                  void *const *device_pointers,
                                                  const size_t *bytes,
                                                  size_t count,
                                                  int64_t position);

/** The state's device address; null for a cache without memory. It may be
 * written on the stream of the steps, between two of them. NOT_FOUND. */
MEGALITH_API megalith_status megalith_state_pointer(megalith_instance *instance,
                                                    const char *name,
                                                    void **device_pointer);

/** Rows every cache can hold; INT64_MAX if nothing bounds the position. */
MEGALITH_API megalith_status
megalith_cache_capacity(megalith_instance *instance, int64_t *rows);

/**
 * Sets the number of tokens seen, which is the number of valid rows in every
 * cache: 0 .. capacity, else CAPACITY.
 */
MEGALITH_API megalith_status megalith_set_position(megalith_instance *instance,
                                                   int64_t position);

/** The number of tokens seen; counts steps that were enqueued. */
MEGALITH_API megalith_status megalith_get_position(megalith_instance *instance,
                                                   int64_t *position);

/**
 * One token: launches the block's kernel once on `stream`, and adds 1 to the
 * position. `input` and `output` are device addresses, 16-byte aligned, of the
 * bundle's input and output shapes; they may be equal if the manifest's
 * "in_place" says so, and must not overlap otherwise. Does nothing else: no
 * allocation, copy, memset or synchronisation. Steps of one instance must be
 * ordered: use one stream, or order the streams with events. Steps of different
 * instances need no order.
 *
 * May be captured into a graph. Addresses and the position are part of the
 * captured node: every replay runs with those of the captured call, while the
 * contents of vectors, states and weights are those at the time of the replay.
 * Capturing moves the position as stepping does; replays do not.
 *
 * NOT_READY, CAPACITY (position + 1 above it), INVALID_ARGUMENT, DRIVER_ERROR
 * (also errors of earlier asynchronous work).
 */
MEGALITH_API megalith_status megalith_step(megalith_instance *instance,
                                           const void *input, void *output,
                                           void *stream);

/**
 * megalith_step for host buffers, on the default stream: copies in, steps,
 * waits, copies out. For tests and tools. TIMEOUT with a watchdog; after any
 * error the position is as before, but the state may have been stepped.
 */
MEGALITH_API megalith_status megalith_step_host(megalith_instance *instance,
                                                const void *input,
                                                void *output);

/**
 * Waits until all work of `stream` so far is done, for at most `milliseconds`
 * (0: looks once). OK; DRIVER_ERROR, with which earlier work failed; TIMEOUT,
 * with a message that says where the kernel is: phases with their stages and
 * how many CTAs are in each, and how many have arrived at the grid barrier, as
 * far as the bundle keeps such words (docs/bundle-format.md). After TIMEOUT the
 * instance is as before, and one may wait again.
 */
MEGALITH_API megalith_status megalith_wait(megalith_instance *instance,
                                           void *stream, uint32_t milliseconds);

/**
 * Bounds how long this instance's functions wait for the device: those that
 * touch device memory from the host return TIMEOUT, with a message as
 * megalith_wait's, and megalith_instance_destroy gives up. 0, which is the
 * default, waits without end. A kernel that hangs stays on the device until the
 * process ends, and nothing else of the context runs; so report, and exit.
 */
MEGALITH_API megalith_status megalith_set_watchdog(megalith_instance *instance,
                                                   uint32_t milliseconds);

/**
 * Copies what the last step left in a probe. `bytes` must be the probe's size.
 * NOT_FOUND, INVALID_ARGUMENT, DRIVER_ERROR.
 */
MEGALITH_API megalith_status megalith_read_probe(megalith_instance *instance,
                                                 const char *name, void *data,
                                                 size_t bytes);

/**
 * Makes a fresh start: zeroes every state (caller-owned ones too) and the
 * workspace, and sets position 0. Weights and bindings stay.
 */
MEGALITH_API megalith_status megalith_reset(megalith_instance *instance);

#ifdef __cplusplus
}
#endif

#endif
