/* The documents linked into the binary. */
  .section .rodata
  .globl braid_openapi
  .hidden braid_openapi
braid_openapi:
  .incbin BRAID_OPENAPI
  .globl braid_openapi_end
  .hidden braid_openapi_end
braid_openapi_end:
  .globl braid_docs_page
  .hidden braid_docs_page
braid_docs_page:
  .incbin BRAID_DOCS_PAGE
  .globl braid_docs_page_end
  .hidden braid_docs_page_end
braid_docs_page_end:
  .section .note.GNU-stack, "", @progbits
