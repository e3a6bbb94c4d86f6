// What a user may choose about the reading of pictures, clips and sounds.
#pragma once

namespace h3 {

struct ReadOptions {
  bool alpha_on_white = false;  // transparent pixels over white; otherwise alpha is dropped
  bool downmix = false;         // more than two channels are mixed to stereo; otherwise they are refused
};

}  // namespace h3
