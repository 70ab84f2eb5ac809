/* The model linked into the binary: a read-only section of its own, page-aligned so that its pages can be given back.
   Without BRAID_EMBEDDED_MODEL (BRAID_EMBED=OFF) the section is empty. */
  .section .braid_model, "a", @progbits
  .balign 4096
  .globl braid_embedded_model
  .hidden braid_embedded_model
braid_embedded_model:
#ifdef BRAID_EMBEDDED_MODEL
  .incbin BRAID_EMBEDDED_MODEL
#endif
  .globl braid_embedded_model_end
  .hidden braid_embedded_model_end
braid_embedded_model_end:
  .section .note.GNU-stack, "", @progbits
