/* The API's description, linked into the binary. */
  .section .rodata
  .globl braid_openapi
  .hidden braid_openapi
braid_openapi:
  .incbin BRAID_OPENAPI
  .globl braid_openapi_end
  .hidden braid_openapi_end
braid_openapi_end:
  .section .note.GNU-stack, "", @progbits
