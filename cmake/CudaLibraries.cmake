# The libraries of the CUDA backend beyond the toolkit: cuDNN 9, the headers of cudnn-frontend, NCCL. Sets
# H3RENDER_WITH_CUDA where all are there; a missing one is an error with H3RENDER_CUDA=ON, else the backend is left out.
# NVIDIA's Python packages hold the same libraries and headers; they are looked at too.
execute_process(COMMAND python3 -c "import nvidia; print(';'.join(nvidia.__path__))"
                OUTPUT_VARIABLE nvidia_packages OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
set(package_roots)
foreach(root ${nvidia_packages})
  list(APPEND package_roots ${root}/cudnn ${root}/cu13 ${root}/cublas ${root}/nccl)
endforeach()

find_path(CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS} PATHS ${package_roots} PATH_SUFFIXES include)
find_library(CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${CUDAToolkit_LIBRARY_DIR} PATHS ${package_roots}
             PATH_SUFFIXES lib lib64)
find_path(CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h
          HINTS ${CMAKE_SOURCE_DIR}/build/deps/cudnn-frontend ${CUDNN_INCLUDE_DIR} PATH_SUFFIXES include)

find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} PATHS ${package_roots} PATH_SUFFIXES include)
find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${CUDAToolkit_LIBRARY_DIR} PATHS ${package_roots}
             PATH_SUFFIXES lib lib64)

set(missing)
if(NOT TARGET CUDA::cublasLt)
  list(APPEND missing "cuBLASLt (part of the CUDA toolkit)")
endif()
if(NOT CUDNN_INCLUDE_DIR OR NOT CUDNN_LIBRARY)
  list(APPEND missing "cuDNN 9 (CUDNN_INCLUDE_DIR, CUDNN_LIBRARY)")
endif()
if(NOT CUDNN_FRONTEND_INCLUDE_DIR)
  list(APPEND missing "cudnn-frontend (run tools/fetch-cudnn-frontend.sh, or set CUDNN_FRONTEND_INCLUDE_DIR)")
endif()
if(NOT NCCL_INCLUDE_DIR OR NOT NCCL_LIBRARY)
  list(APPEND missing "NCCL 2 (NCCL_INCLUDE_DIR, NCCL_LIBRARY)")
endif()
if(missing)
  list(JOIN missing "; " missing)
  if(NOT H3RENDER_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "H3RENDER_CUDA=${H3RENDER_CUDA} but these were not found: ${missing}")
  endif()
  message(WARNING "the CUDA backend is left out, these were not found: ${missing}")
else()
  add_library(cudnn::cudnn INTERFACE IMPORTED GLOBAL)
  target_include_directories(cudnn::cudnn INTERFACE ${CUDNN_INCLUDE_DIR})
  target_link_libraries(cudnn::cudnn INTERFACE ${CUDNN_LIBRARY})
  add_library(cudnn::frontend INTERFACE IMPORTED GLOBAL)
  target_include_directories(cudnn::frontend INTERFACE ${CUDNN_FRONTEND_INCLUDE_DIR})
  target_link_libraries(cudnn::frontend INTERFACE CUDA::nvrtc)
  add_library(nccl::nccl INTERFACE IMPORTED GLOBAL)
  target_include_directories(nccl::nccl INTERFACE ${NCCL_INCLUDE_DIR})
  target_link_libraries(nccl::nccl INTERFACE ${NCCL_LIBRARY})
  set(H3RENDER_WITH_CUDA ON)
endif()
