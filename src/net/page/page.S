/* The files of the web page, linked into the binary: braid_page_files lists name, begin and end of each, and ends with a null. */
  .macro page_file name
  .section .rodata
771:
  .asciz "\name"
772:
  .incbin "\name"
773:
  .section .data.rel.ro, "aw"
  .quad 771b, 772b, 773b
  .endm

  .section .data.rel.ro, "aw"
  .balign 8
  .globl braid_page_files
  .hidden braid_page_files
braid_page_files:
  page_file index.html
  page_file page.css
  page_file icon.svg
  page_file api.js
  page_file chart.js
  page_file chat.js
  page_file composer.js
  page_file conversation.js
  page_file docs.css
  page_file docs.html
  page_file docs.js
  page_file dom.js
  page_file engine_room.js
  page_file export.js
  page_file figures.js
  page_file inline.js
  page_file log_lines.js
  page_file main.js
  page_file markdown.js
  page_file markdown_view.js
  page_file maths.js
  page_file message.js
  page_file models.js
  page_file pool.js
  page_file reply.js
  page_file settings.js
  page_file store.js
  page_file tokens.js
  .quad 0
  .section .note.GNU-stack, "", @progbits
