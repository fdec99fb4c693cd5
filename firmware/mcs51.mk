# Images for the 8051, by SDCC; a part of Makefile. Beside each NAME.ihx there is NAME.mem, which shows RAM, and NAME.map, which names it.

SDCC ?= sdcc

# Profile A with nothing kept: of the library only this is needed, and all that it remembers is one frame and the call at hand.
mcs51_library := $(addprefix $(lib)/src/,crc.c frame_a.c profile_a.c stub.c tables.c)
mcs51_port    := $(root)/firmware/ports/mcs51.c
mcs51_headers := $(lib_headers) $(wildcard $(root)/firmware/ports/*.h $(root)/boards/mcs51/*.h)
# Two optimisations of loops cost bytes here, of code and of RAM. Warnings 116 and 126 are about code for long messages, which a map with
# short ones leaves out.
mcs51_flags   := -mmcs51 --model-small --std-sdcc99 --opt-code-size --noinduction --noinvariant \
	--Werror --disable-warning 116 --disable-warning 126 -DMCPAX_KEPT=0
mcs51_object   = $(build)/mcs51/$(1)/$(basename $(notdir $(2))).rel

.PHONY: mcs51 mcs51-tests
mcs51: $(build)/mcs51/relay-board.ihx
mcs51-tests: $(build)/mcs51/vectors.ihx

# image, map, sources besides library and port, more flags
define mcs51_image
$(foreach source,$(mcs51_library) $(mcs51_port) $(3),$(eval $(call mcs51_object_rule,$(1),$(2),$(source),$(4))))

$(build)/mcs51/$(1).ihx: $(foreach source,$(mcs51_library) $(mcs51_port) $(3),$(call mcs51_object,$(1),$(source)))
	$(SDCC) $(mcs51_flags) --iram-size 256 --code-size 8192 -o $$@ $$^
endef

define mcs51_object_rule
$(call mcs51_object,$(1),$(3)): $(3) $(build)/maps/$(2)/mcpax_map.h $(mcs51_headers)
	@mkdir -p $$(@D)
	$(SDCC) $(mcs51_flags) $(4) $(call includes,$(2)) -I$(root)/firmware/ports -I$(root)/boards/mcs51 -c $$< -o $$@
endef

$(eval $(call mcs51_image,relay-board,relay-board-51,$(addprefix $(root)/firmware/,ports/main.c examples/relay_board.c)))

# The stub of the byte vectors has larger messages and values; a shorter ring makes room for them.
$(eval $(call mcs51_image,vectors,vector-a51,$(addprefix $(root)/tests/firmware/,chip_main.c board_app.c app.c),-DRING_SIZE=16))
