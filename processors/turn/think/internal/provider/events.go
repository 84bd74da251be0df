package provider

import (
	"bufio"
	"bytes"
	"io"
	"iter"
)

// maxLine bounds a line of a stream of events, in bytes.
const maxLine = 32 << 20

// Events reads the data of server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html) until the stream ends,
// or data begins with [DONE]. An event without an empty line behind it is not complete and is left out. The data is valid until
// the next one.
func Events(stream io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		lines := bufio.NewScanner(stream)
		lines.Buffer(nil, maxLine)
		var data []byte
		for lines.Scan() {
			line := lines.Bytes()
			name, value, _ := bytes.Cut(line, []byte(":"))
			switch {
			case len(line) == 0 && len(data) > 0:
				if !yield(data, nil) {
					return
				}
				data = data[:0]
			case string(name) == "data" && len(data) == 0 && bytes.HasPrefix(bytes.TrimSpace(value), []byte("[DONE]")):
				return // a server may hold the connection without an empty line
			case string(name) == "data":
				data = append(append(data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
			}
		}
		if err := lines.Err(); err != nil {
			yield(nil, err)
		}
	}
}
