package command

import (
	"strings"

	"github.com/turntable-streams/turntable/topics"
)

const (
	// MaxBlock is the longest block in characters. It bounds what a Parser keeps.
	MaxBlock = 100_000
	// maxBlockBytes bounds a block of characters that take more than three bytes, or of bytes that are no characters.
	maxBlockBytes = 3 * MaxBlock
	// maxName is longer than every name. Longer words are not names of commands that somebody misspelt.
	maxName = 64
	// maxOpen bounds how deep objects and arrays of a payload are nested.
	maxOpen = 32
)

// Item is a block of the text.
type Item struct {
	// Offset is where the block begins, in bytes from the beginning of the session's text. No two items have the same.
	Offset int64
	Name   string
	// Payload is the command's object, {} for a command without one. It is valid for Decode, and nil if there is a Problem.
	Payload topics.Raw
	// Problem is the answer to the agent for a block that must not be executed, else empty.
	Problem string
}

// mode is the part of a block that a Parser reads.
type mode = uint32

const (
	prose   mode = iota // no block
	opened              // white space before the name
	naming              // the name
	named               // white space after the name
	payload             // JSON
	paid                // white space after the payload
	refused             // the rest of a block that is not executed
)

// A bracket, or any other byte of the text.
type unit struct {
	text  string
	open  bool
	close bool
}

const (
	openBracket  = "⟦"
	closeBracket = "⟧"

	halfOpen  = 1
	halfClose = 2
)

// Write reads the next piece of the text and returns the blocks that end in it, in the order in which that is known. A piece may
// end anywhere, also inside a character.
func (p *Parser) Write(text string) []Item {
	w := writer{Parser: p}
	for len(text) > 0 {
		if p.Mode == prose && p.Partial == 0 {
			// Most text is prose: the next bracket is searched for instead of every byte.
			skip := strings.IndexByte(text, openBracket[0])
			if skip < 0 {
				skip = len(text)
			}
			if skip > 0 {
				p.Half = 0
				p.Offset += int64(skip)
				text = text[skip:]
				continue
			}
		}
		w.byte(text[0])
		text = text[1:]
	}
	return w.items
}

// Drop forgets a block that has begun. The agent's process has ended, so the rest of the block will not come. Offsets go on
// rising. Use a new Parser for a new session.
func (p *Parser) Drop() {
	offset := p.Offset + int64(p.Partial)
	p.clear()
	p.Offset = offset
}

// clear returns to prose.
func (p *Parser) clear() {
	offset, unknown := p.Offset, p.ProtoReflect().GetUnknown()
	p.Reset()
	p.Offset = offset
	p.ProtoReflect().SetUnknown(unknown)
}

// writer is a Parser and what it found.
type writer struct {
	*Parser
	items []Item
}

// byte reads a byte. Bytes that may be the beginning of a bracket are held back until it is known whether they are.
func (w *writer) byte(b byte) {
	switch {
	case w.Partial == 0 && b == openBracket[0], w.Partial == 1 && b == openBracket[1]:
		w.Partial++
		return
	case w.Partial == 2 && (b == openBracket[2] || b == closeBracket[2]):
		w.Partial = 0
		if b == openBracket[2] {
			w.unit(unit{text: openBracket, open: true})
		} else {
			w.unit(unit{text: closeBracket, close: true})
		}
		return
	}
	if held := w.Partial; held > 0 {
		w.Partial = 0
		for i := range held {
			w.unit(unit{text: openBracket[i : i+1]})
		}
		w.byte(b)
		return
	}
	w.unit(unit{text: string([]byte{b})})
}

// again reads units that were read before.
func (w *writer) again(text string) {
	for len(text) > 0 {
		u := unit{text: text[:1]}
		switch {
		case strings.HasPrefix(text, openBracket):
			u = unit{text: openBracket, open: true}
		case strings.HasPrefix(text, closeBracket):
			u = unit{text: closeBracket, close: true}
		}
		text = text[len(u.text):]
		w.unit(u)
	}
}

// characters counts the characters that a text begins, whatever its bytes are.
func characters(text string) (n int64) {
	for i := range len(text) {
		if text[i]&0xc0 != 0x80 {
			n++
		}
	}
	return n
}

// unit reads a unit.
func (w *writer) unit(u unit) {
	w.Offset += int64(len(u.text))
	if w.Mode != prose {
		w.Length += characters(u.text)
	}
	switch w.Mode {
	case prose:
		w.prose(u)
	case opened:
		w.opened(u)
	case naming, named, paid:
		w.outside(u)
	case payload:
		w.payload(u)
	default:
		w.refused(u)
	}
	if w.Mode != prose && (w.Length >= MaxBlock || w.Offset-w.Start >= maxBlockBytes) {
		w.giveUp()
	}
}

// prose reads a unit outside blocks.
func (w *writer) prose(u unit) {
	switch {
	case u.open && w.Half == halfOpen:
		w.Half = 0
		w.Mode, w.Start, w.Length = opened, w.Offset-2*int64(len(u.text)), 2
	case u.open:
		w.Half = halfOpen
	default:
		w.Half = 0
	}
}

// resume ends a block and reads a unit that does not belong to it as prose.
func (w *writer) resume(u unit) {
	w.clear()
	w.prose(u)
}

// opened reads a unit before the name. The last two of several brackets are the opener.
func (w *writer) opened(u unit) {
	switch {
	case u.open && w.Length == 3:
		w.Start, w.Length = w.Start+int64(len(u.text)), 2
	case w.space(u):
	case isUpper(u):
		w.Mode, w.Name = naming, u.text
	default:
		w.resume(u)
	}
}

// outside reads a unit after the beginning of the name and outside the payload.
func (w *writer) outside(u unit) {
	switch {
	case w.Half == halfClose && u.close:
		w.finish()
	case w.Half == halfOpen && u.open:
		if w.Mode == paid {
			w.problem(w.Name + problemEnd + example(w.Name))
		}
		w.refuse()
		w.Loose = true
		w.innerOpened()
	case w.Half != 0:
		w.stray(u)
	case u.open:
		w.Half = halfOpen
	case u.close:
		w.Half = halfClose
	case w.space(u):
		if w.Mode == naming {
			w.Mode = named
		}
	case w.Mode == naming && (isUpper(u) || isDigit(u) || u.text == "_") && len(w.Name) < maxName:
		w.Name += u.text
	case w.Mode != paid && (u.text == "{" || u.text == "["):
		w.Mode, w.Want = payload, wantValue
		w.payload(u)
	default:
		w.stray(u)
	}
}

// stray ends a block at a unit that cannot be a part of it. Behind a payload that is a mistake; behind a name it is prose.
func (w *writer) stray(u unit) {
	if w.Mode == paid {
		w.problem(w.Name + problemEnd + example(w.Name))
	}
	w.resume(u)
}

// giveUp ends a block that is too long.
func (w *writer) giveUp() {
	if w.Name != "" {
		w.problem(w.Name + problemLong)
	}
	half := w.Half
	w.clear()
	if half == halfOpen {
		w.Half = half
	}
}

// spaces are the white space beyond ASCII, and characters without width that programs put beside text.
var spaces = []string{
	"\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006", "\u2007", "\u2008", "\u2009",
	"\u200a", "\u200b", "\u2028", "\u2029", "\u202f", "\u205f", "\u2060", "\u3000", "\ufeff",
}

// space reports whether a unit is white space, or a byte of it.
func (w *writer) space(u unit) bool {
	white := string(w.White) + u.text
	w.White = nil
	if len(white) == len(u.text) && isSpace(u) {
		return true
	}
	for _, s := range spaces {
		if strings.HasPrefix(s, white) {
			if s != white {
				w.White = []byte(white)
			}
			return true
		}
	}
	return false
}

func isSpace(u unit) bool {
	return u.text == " " || u.text == "\n" || u.text == "\t" || u.text == "\r"
}

func isUpper(u unit) bool { return len(u.text) == 1 && u.text[0] >= 'A' && u.text[0] <= 'Z' }

func isDigit(u unit) bool { return len(u.text) == 1 && u.text[0] >= '0' && u.text[0] <= '9' }
