package text

import (
	"bytes"
	"strings"
)

const (
	// maxNesting is how many markers of quotes and lists a line can begin with.
	maxNesting = 64
	// maxLinkWork bounds what looks like links and their definitions in a paragraph, times the bytes of the paragraph, summed over all paragraphs.
	maxLinkWork = 100 << 20
)

// tame reports whether the Markdown parser needs about as much time as the text is long. A text for which it would need
// much more, which no one writes on purpose to be read, is not parsed.
func tame(src []byte) bool {
	work, length, links := 0, 0, 0
	for line := range bytes.Lines(src) {
		if markers(line) > maxNesting {
			return false
		}
		if len(bytes.TrimSpace(line)) == 0 {
			work, length, links = work+length*links, 0, 0
			continue
		}
		length += len(line)
		links += bytes.Count(line, []byte("](")) + bytes.Count(line, []byte("]:")) + bytes.Count(line, []byte("<"))/16
	}
	return work+length*links <= maxLinkWork
}

// markers returns how many markers of quotes and lists a line begins with.
func markers(line []byte) (n int) {
	for i, c := range line {
		switch {
		case c == '>':
			n++
		case strings.IndexByte("-*+.)", c) >= 0:
			if i+1 < len(line) && (line[i+1] == ' ' || line[i+1] == '\t') {
				n++
			}
		case c == ' ', c == '\t', c >= '0' && c <= '9':
		default:
			return n
		}
	}
	return n
}
