package truncate

import (
	"maps"
	"strconv"
	"strings"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/topics"
)

// DeadLetter is a copy of a record for a dead-letter topic. A copy has headers that its record has not, so a record near the
// size limit has a copy over it.
type DeadLetter struct {
	Key     string
	Value   []byte
	Headers goka.Headers
}

// errorPrefix is the prefix of the headers that only dead letters have.
const errorPrefix = "error."

// letterStep is by how many bytes a value is truncated at first: more than the headers of a dead letter have.
const letterStep = 8 << 10

// Shorter returns a shorter copy in place of one that was refused because of its size. It truncates the value: by some
// kilobytes the first time, then to half of it each time. Then it drops all headers but the error headers, then it truncates
// the key. The header error.truncated has the original size of the value. ok is false if nothing is left to drop.
func (l DeadLetter) Shorter() (shorter DeadLetter, ok bool) {
	_, again := l.Headers[topics.HeaderErrorTruncated]
	size := len(l.Value)
	headers := maps.Clone(l.Headers)
	maps.DeleteFunc(headers, func(name string, _ []byte) bool { return !strings.HasPrefix(name, errorPrefix) })
	switch {
	case size > letterStep && !again:
		l.Value = l.Value[:size-letterStep]
	case size > 0:
		l.Value = l.Value[:size/2]
	case len(headers) < len(l.Headers):
		l.Headers = headers
	case l.Key != "":
		l.Key = l.Key[:len(l.Key)/2]
	default:
		return l, false
	}
	if !again {
		l.Headers = l.Headers.Merged(goka.Headers{topics.HeaderErrorTruncated: strconv.AppendInt(nil, int64(size), 10)})
	}
	return l, true
}
