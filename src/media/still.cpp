#include "media/still.h"

#include <cstring>
#include <limits>

#include "base/error.h"

namespace h3::ffmpeg {

void check_picture_size(std::int64_t width, std::int64_t height, const std::string& where) {
  if (width < 1 || height < 1 || width * height > most_picture_pixels)
    throw UserError(where, "size", fmt::format("{}x{}", width, height),
                    fmt::format("expected from 1 to {} pixels", most_picture_pixels));
}

Frame decode_still(AVCodecID id, std::string_view bytes, const std::string& where, int idct) {
  quiet_log();
  const AVCodec* decoder = avcodec_find_decoder(id);
  check_read(decoder ? 0 : AVERROR_DECODER_NOT_FOUND, where, "avcodec_find_decoder");
  const Codec codec(avcodec_alloc_context3(decoder));
  check_read(codec ? 0 : AVERROR(ENOMEM), where, "avcodec_alloc_context3");
  codec->err_recognition = AV_EF_CRCCHECK | AV_EF_EXPLODE;
  codec->max_pixels = most_picture_pixels;
  codec->thread_count = 1;
  codec->idct_algo = idct;
  check_read(avcodec_open2(codec.get(), decoder, nullptr), where, "avcodec_open2");
  const Packet packet = new_packet();
  const bool fits =
      bytes.size() <= static_cast<std::size_t>(std::numeric_limits<int>::max() - AV_INPUT_BUFFER_PADDING_SIZE);
  check_read(fits ? av_new_packet(packet.get(), static_cast<int>(bytes.size())) : AVERROR(EFBIG), where,
             "av_new_packet");
  std::memcpy(packet->data, bytes.data(), bytes.size());
  Frame frame = new_frame();
  check_read(avcodec_send_packet(codec.get(), packet.get()), where, "avcodec_send_packet");
  check_read(avcodec_send_packet(codec.get(), nullptr), where, "avcodec_send_packet");
  check_read(avcodec_receive_frame(codec.get(), frame.get()), where, "avcodec_receive_frame");
  if (frame->decode_error_flags != 0) throw UserError(where, "", "", "is damaged");
  return frame;
}

}  // namespace h3::ffmpeg
