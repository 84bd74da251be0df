// Package command reads the commands that a coding agent writes into its text, and knows what each of them says.
//
// A command is a block of the form
//
//	⟦⟦ NAME {"key": "value"} ⟧⟧
//
// with a name in upper case and, for most commands, an object in JSON. White space and line breaks are free. A Parser reads the
// text of one session in pieces of any size and returns an Item for each block, with the block's place in the text. What it
// returns depends on the text only, not on where the pieces end, so an item's place identifies a command also after a crash.
//
// The rules:
//
//   - Text after ⟦⟦ that cannot become a command is prose, and the search continues right after it: a name in lower case, a name
//     that neither white space, a payload nor ⟧⟧ follows, or words after a name. Such an opener hides no later command.
//   - Strings of the payload may hold anything, also blocks: they are text and are never executed.
//   - A block inside another block, outside a string, is reported and not executed. The outer block is then no command either.
//   - When a payload turns out not to be JSON, its strings no longer protect what they hold: the block ends at its first ⟧⟧ that closes no
//     inner block. It is reported once, and the commands after it run.
//   - Code spans and code fences have no effect: a command in one is executed.
//   - A block longer than MaxBlock is given up and reported; the search continues after what was read of it.
//
// Decode turns a payload into the struct of its command and enforces the limits. The functions of the package are pure.
package command
