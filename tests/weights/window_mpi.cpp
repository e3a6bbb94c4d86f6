// Run under mpirun: the ranks of the node load the nano model into one shared segment, and every rank compares every
// byte with what it loads alone.
#include <mpi.h>

#include <cstdio>
#include <cstring>

#include "weights/identity.h"
#include "weights/load.h"

int main(int argc, char** argv) {
  using namespace h3;
  MPI_Init(&argc, &argv);
  int wrong = 0;
  {
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    const ModelFolder model = open_model(H3RENDER_SOURCE_DIR "/jobs/nano");
    const auto memory = make_node_memory(node, {});
    for (Component component :
         {Component::transformer, Component::text_encoder, Component::video_vae, Component::audio_vae}) {
      const WeightSet shared = load_component(model, component, {}, *memory), alone = load_component(model, component);
      for (const auto& [name, t] : alone.tensors())
        if (std::memcmp(t.data, shared.at(name).data, t.bytes()) != 0) {
          std::fprintf(stderr, "rank %d: %s differs\n", memory->rank(), name.c_str());
          ++wrong;
        }
    }
    const IdentityOptions nothing_remembered{.cache = "/proc/nowhere"};
    if (model_identity(model, *memory, nothing_remembered) != model_identity(model, nothing_remembered)) ++wrong;
    MPI_Comm_free(&node);
  }
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
