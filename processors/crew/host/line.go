package host

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode/utf8"
)

// maxLine is the size of the longest message of an agent, in bytes.
const maxLine = 16 << 20

var errLine = errors.New("a line of standard output is longer than 16 MiB")

// lines calls handle with each line that is not blank, as valid UTF-8, until the reader ends. The line is only valid during the
// call. The last line needs no line feed. It returns errLine for a line that is too long, and nil at the end.
func lines(from io.Reader, limit int, handle func([]byte)) error {
	r := bufio.NewReaderSize(from, 64<<10)
	var long []byte // the beginning of a line that the buffer does not hold
	for {
		part, err := r.ReadSlice('\n')
		if len(long)+len(part) > limit {
			return errLine
		}
		line := part
		if len(long) > 0 || errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, part...)
			line = long
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if !utf8.Valid(line) {
				line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
			}
			handle(line)
		}
		if long = long[:0]; cap(long) > 1<<20 {
			long = nil
		}
		if err != nil { // the end, or the pipe is broken
			return nil
		}
	}
}
