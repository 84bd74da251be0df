package turn

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// span is the position of an element in an array.
type span struct{ from, to int }

// elementsOf returns the positions of the elements of a JSON array that are not null.
func elementsOf(array topics.Raw) (spans []span) {
	scan(array, func(s span) { spans = append(spans, s) })
	return spans
}

// messages counts the elements of a JSON array that are not null.
func messages(array topics.Raw) (count uint32) {
	scan(array, func(span) { count++ })
	return count
}

// scan calls found for the elements of a JSON array that are not null. The array must be valid JSON, which codecs guarantee,
// so only brackets, commas and quotes are examined. This is fast because a history is counted at every response.
func scan(array topics.Raw, found func(span)) {
	depth := 0
	from := -1 // position of the current element; -1 before its first byte
	end := func(at int) {
		if from >= 0 && array[from] != 'n' {
			found(span{from, from + len(bytes.TrimRight(array[from:at], " \t\r\n"))})
		}
		from = -1
	}
	for i := 0; i < len(array); i++ {
		b := array[i]
		if depth == 1 && from < 0 && b > ' ' && b != ',' && b != ']' {
			from = i
		}
		switch b {
		case '"':
			i += quote(array[i+1:])
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				end(i)
			}
		case ',':
			if depth == 1 {
				end(i)
			}
		}
	}
}

// quote returns the length of a text up to and including its closing quote.
func quote(text []byte) int {
	for at := 0; ; {
		n := bytes.IndexByte(text[at:], '"')
		if n < 0 {
			return len(text)
		}
		at += n + 1
		escapes := 0
		for at-2-escapes >= 0 && text[at-2-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at
		}
	}
}

// An exchange is a message that is neither the model's nor a tool's, and what follows up to the next such message. A
// conversation is only divided between two exchanges, and only where no tool call is separated from its result: providers
// reject a prompt that has one without the other. A user's message that has the result of a call belongs to the exchange
// before it.

// room is how much of a conversation stays when its front is cut off.
type room struct {
	bytes int
	// messages and exchanges are 0 for any number.
	messages, exchanges int
}

// front is the front of a conversation that is cut off, and what stays of it.
type front struct {
	bytes int // up to and including the last message that is cut off
	kept  int // messages that stay
	size  int // of the array of these messages, in bytes
}

// cutFront returns the shortest front of a conversation without which the rest fits into keep; the zero front if all of it
// does, or if the conversation cannot be divided. The newest exchange stays even if it does not fit, unless entirely is
// true: then the front may be the whole conversation. The conversation has no null elements, as Splice returns it.
func cutFront(conversation topics.Raw, keep room, entirely bool) (cut front) {
	spans := elementsOf(conversation)
	if len(spans) == 0 {
		return front{}
	}
	found := false
	if entirely {
		cut, found = front{bytes: spans[len(spans)-1].to, size: len("[]")}, true
	}
	results := map[string]bool{} // the calls after this message's results whose calls are not seen yet
	exchanges := 0
	for i := len(spans) - 1; i >= 0; i-- {
		at := front{kept: len(spans) - i, size: len("[]") + spans[len(spans)-1].to - spans[i].from}
		m, err := topics.DecodeMessage(conversation[spans[i].from:spans[i].to])
		if err != nil {
			return cut // does not happen: codecs validate histories
		}
		pairCalls(m, results)
		starts := startsExchange(m) && len(results) == 0
		if starts {
			exchanges++
		}
		fits := at.size <= keep.bytes && (keep.messages == 0 || at.kept <= keep.messages) &&
			(keep.exchanges == 0 || exchanges <= keep.exchanges)
		switch {
		case i == 0 && fits:
			return front{}
		case !fits && found:
			return cut
		case starts && i > 0:
			at.bytes = spans[i-1].to
			cut, found = at, true
		}
	}
	return cut
}

// startsExchange reports whether a message begins an exchange by its role. A message without a role is the user's.
func startsExchange(m topics.Message) bool {
	return blank(m.Role) || *m.Role != roleReplies && *m.Role != roleTool
}

// pairCalls adds the results in a message to those whose calls must come before it, and removes those whose calls it has.
// The blocks are read backwards, because a message may have a call and then its result.
func pairCalls(m topics.Message, results map[string]bool) {
	if jsontext.Value(m.Content).Kind() != '[' {
		return
	}
	blocks, _ := topics.Elements(m.Content)
	for i := len(blocks) - 1; i >= 0; i-- {
		if id := textMember(blocks[i], "tool_use_id"); id != "" {
			results[id] = true
		} else if id := textMember(blocks[i], "id"); id != "" {
			delete(results, id)
		}
	}
}

// textMember returns a member of an object that is a text; "" if there is none.
func textMember(object topics.Raw, name string) string {
	v, _ := topics.Lookup(object, name)
	if jsontext.Value(v).Kind() != '"' {
		return ""
	}
	return *topics.TextOf(v)
}

// withoutFront returns a conversation without its first bytes, which end with a message; nil if no message is left.
func withoutFront(conversation topics.Raw, end int) topics.Raw {
	rest := bytes.TrimLeft(conversation[end:], ", \t\r\n")
	if len(rest) <= len("]") {
		return nil
	}
	return append(append(make(topics.Raw, 0, 1+len(rest)), '['), rest...)
}

// sharedLength returns the length of the common prefix of two texts.
func sharedLength(a, b []byte) int {
	n, least := 0, min(len(a), len(b))
	if least > 0 && &a[0] == &b[0] {
		return least // the same memory
	}
	for chunk := 4096; chunk > 1; chunk /= 8 {
		for n+chunk <= least && bytes.Equal(a[n:n+chunk], b[n:n+chunk]) {
			n += chunk
		}
	}
	for n < least && a[n] == b[n] {
		n++
	}
	return n
}

// extends reports whether a conversation begins with another one.
func extends(long, short topics.Raw) bool {
	return len(short) <= bracket || sharedLength(long, short) >= len(short)-bracket
}

// conversation returns the history after a response, as one JSON array: the previous messages, the input and the model's
// messages. previous is the number of PreviousMessages, which the caller has counted already.
func conversation(r topics.ThinkResponse, previous uint32) (whole topics.Raw, length uint32) {
	length = previous + messages(r.LastInputResponse)
	if r.LastInputMessage != nil {
		length++
	}
	return topics.Splice(r.PreviousMessages, r.LastInputMessage, r.LastInputResponse), length
}
