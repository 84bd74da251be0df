package approval

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

type verdict uint8

const (
	holds verdict = iota
	doesNotHold
	cannotTell
)

// check evaluates a condition on the value that a pointer names in the arguments. A value that does not exist does not meet
// the condition. Arguments that are not valid JSON, or in which a member is repeated, cannot be judged: the tool may read
// them differently.
func (c Condition) check(args topics.Raw, pointer string) verdict {
	if args == nil {
		return doesNotHold
	}
	if !valid(args) {
		return cannotTell
	}
	value, ok := locate(args, pointer)
	if !ok {
		return doesNotHold
	}
	if c.Equals != nil && !topics.Equal(value, c.Equals) {
		return doesNotHold
	}
	if c.Like != "" {
		if kind(value) != '"' {
			return cannotTell
		}
		if text := topics.TextOf(value); text == nil || !like(c.Like, *text) {
			return doesNotHold
		}
	}
	return c.checkBounds(value)
}

func (c Condition) checkBounds(value topics.Raw) verdict {
	if c.AtMost == nil && c.AtLeast == nil {
		return holds
	}
	if kind(value) != '0' {
		return cannotTell
	}
	n, err := strconv.ParseFloat(string(value), 64)
	switch {
	case err != nil || math.IsInf(n, 0):
		return cannotTell
	case c.AtMost != nil && n > *c.AtMost, c.AtLeast != nil && n < *c.AtLeast:
		return doesNotHold
	default:
		return holds
	}
}

// kind returns the kind of a value; null for nil.
func kind(value topics.Raw) jsontext.Kind {
	if value == nil {
		return 'n'
	}
	return jsontext.Value(value).Kind()
}

// valid reports whether a value is one JSON value without repeated members and without invalid UTF-8, and not nested deeper
// than the records of the topics may be.
func valid(value topics.Raw) bool {
	dec := jsontext.NewDecoder(bytes.NewReader(value))
	for values := 0; ; {
		_, err := dec.ReadToken()
		switch {
		case errors.Is(err, io.EOF):
			return values == 1
		case err != nil || dec.StackDepth() > topics.MaxDepth:
			return false
		case dec.StackDepth() == 0:
			values++
		}
	}
}

// locate returns the value that a JSON Pointer (RFC 6901) names, nil for null, and whether it exists. value is valid.
func locate(value topics.Raw, pointer string) (topics.Raw, bool) {
	for pointer != "" {
		var token string
		token, pointer = cutToken(pointer)
		switch kind(value) {
		case '{':
			next, ok := topics.Lookup(value, token)
			if !ok {
				return nil, false
			}
			value = next
		case '[':
			elements, err := topics.Elements(value)
			i, ok := index(token, len(elements))
			if err != nil || !ok {
				return nil, false
			}
			value = elements[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// cutToken splits the first token off a pointer, which begins with a slash.
func cutToken(pointer string) (token, rest string) {
	token = pointer[1:]
	if i := strings.IndexByte(token, '/'); i >= 0 {
		token, rest = token[:i], token[i:]
	}
	return unescape.Replace(token), rest
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// index reads the index of an array of n elements.
func index(token string, n int) (int, bool) {
	i, err := strconv.Atoi(token)
	if err != nil || i < 0 || i >= n || strconv.Itoa(i) != token {
		return 0, false
	}
	return i, true
}

func checkPointer(pointer string) error {
	if pointer != "" && pointer[0] != '/' {
		return fmt.Errorf("args: %q is no JSON Pointer, which begins with a slash", pointer)
	}
	for i := range len(pointer) {
		if pointer[i] == '~' && (i+1 == len(pointer) || pointer[i+1] != '0' && pointer[i+1] != '1') {
			return errors.New("args: a ~ in a JSON Pointer is followed by neither 0 nor 1")
		}
	}
	return nil
}
