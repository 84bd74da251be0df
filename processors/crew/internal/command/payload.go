package command

// want is what of JSON may follow. A payload is read strictly enough to know at once where its strings are and when it stops
// being JSON; Decode finds the rest.
type want = uint32

const (
	wantValue  want = iota
	wantFirst       // a value, or the end of an array
	wantMember      // a key, or the end of an object
	wantKey
	wantColon
	wantComma // or the end of the object or the array
	inLiteral // a number, true, false or null
	inString
	inStringEscape
	inKey
	inKeyEscape
)

// payload reads a unit of the payload.
func (w *writer) payload(u unit) {
	ok := false
	switch w.Want {
	case inString, inKey:
		ok = w.inString(u)
	case inStringEscape, inKeyEscape:
		w.Want--
		ok = u.text[0] >= ' '
	default:
		ok = !u.open && !u.close && (isSpace(u) || w.token(u.text[0]))
		if isSpace(u) && w.Want == inLiteral {
			w.Want = wantComma
		}
	}
	if !ok {
		w.breakPayload(u)
		return
	}
	w.Payload = append(w.Payload, u.text...)
	if len(w.Open) == 0 {
		w.Mode = paid
	}
}

// inString reads a unit of a string. A raw control character is not allowed in one.
func (w *writer) inString(u unit) bool {
	switch {
	case u.text == `\`:
		w.Want++
	case u.text != `"`:
		return u.text[0] >= ' '
	case w.Want == inKey:
		w.Want = wantColon
	default:
		w.Want = wantComma
	}
	return true
}

// token reads a byte outside strings and reports whether it may stand there.
func (w *writer) token(b byte) bool {
	value := w.Want == wantValue || w.Want == wantFirst
	behind := w.Want == wantComma || w.Want == inLiteral
	switch b {
	case '{', '[':
		if !value || len(w.Open) >= maxOpen {
			return false
		}
		w.Open = append(w.Open, b)
		w.Want = wantFirst
		if b == '{' {
			w.Want = wantMember
		}
		return true
	case '}', ']':
		empty := w.Want == wantMember && b == '}' || w.Want == wantFirst && b == ']'
		if !behind && !empty || w.Open[len(w.Open)-1] != b-2 { // in ASCII, a closing bracket is two after its opening one
			return false
		}
		w.Open = w.Open[:len(w.Open)-1]
		w.Want = wantComma
		return true
	case ',':
		if !behind {
			return false
		}
		w.Want = wantValue
		if w.Open[len(w.Open)-1] == '{' {
			w.Want = wantKey
		}
		return true
	case ':':
		if w.Want != wantColon {
			return false
		}
		w.Want = wantValue
		return true
	case '"':
		switch {
		case value:
			w.Want = inString
		case w.Want == wantMember || w.Want == wantKey:
			w.Want = inKey
		default:
			return false
		}
		return true
	}
	if !isLiteral(b) || !value && w.Want != inLiteral {
		return false
	}
	w.Want = inLiteral
	return true
}

func isLiteral(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '-' || b == '+' || b == '.'
}

// breakPayload begins to refuse a block at the unit that made its payload something else than JSON. What looked like strings
// may have been something else, so the payload is read again without regard to strings. The block may turn out to have ended
// already: the rest of what was read is then read as what it is.
func (w *writer) breakPayload(u unit) {
	read := string(w.Payload) + u.text
	w.refuse()
	w.Offset -= int64(len(read))
	w.Length -= characters(read)
	if _, known := table[w.Name]; known {
		w.problem(w.Name + problemJSON + example(w.Name))
	}
	w.again(read)
}

// The parts of the head of an inner block.
const (
	headNone   = iota
	headOpened // white space before the name
	headNaming // the name
)

// refuse changes to reading the rest of a block that is not executed.
func (w *writer) refuse() {
	w.Mode, w.Half = refused, 0
	w.Payload, w.Open, w.Want = nil, nil, 0
}

// refused reads a unit of a block that is not executed. Only brackets and the heads of inner blocks matter.
func (w *writer) refused(u unit) {
	switch {
	case u.open && w.Half == halfOpen:
		w.innerOpened()
	case u.open && w.Head == headOpened && w.InnerStart == w.Offset-3*int64(len(openBracket)):
		w.innerOpened() // the last two of several brackets are the opener
	case u.open:
		if w.Head == headNaming {
			w.innerBegins()
		}
		w.Half, w.Head = halfOpen, headNone
	case u.close && w.Half == halfClose:
		w.Half = 0
		w.closed()
	case u.close:
		if w.Head != headNaming {
			w.Head = headNone
		}
		w.Half = halfClose
	default:
		w.words(u)
	}
}

// words reads a unit that is no bracket.
func (w *writer) words(u unit) {
	single := w.Half != 0
	w.Half = 0
	switch {
	case w.Head == headOpened && !single && isSpace(u):
		return
	case w.Head == headOpened && !single && isUpper(u):
		w.Head, w.InnerName = headNaming, u.text
		return
	case w.Head == headNaming && !single && (isUpper(u) || isDigit(u) || u.text == "_") && len(w.InnerName) < maxName:
		w.InnerName += u.text
		return
	case w.Head == headNaming && !single && (isSpace(u) || u.text == "{" || u.text == "["):
		w.innerBegins()
		return
	}
	w.Head = headNone
	if w.Loose && w.Depth == 0 && !isSpace(u) {
		// The opener was prose, or the agent forgot the end marker. Either way the block is over.
		w.resume(u)
	}
}

// innerOpened begins to read the head of an inner block at its second bracket.
func (w *writer) innerOpened() {
	w.Half, w.Head = 0, headOpened
	w.InnerStart, w.InnerName = w.Offset-2*int64(len(openBracket)), ""
}

// innerBegins counts an inner block and reports it if it names a command.
func (w *writer) innerBegins() {
	w.Head = headNone
	w.Depth++
	if _, known := table[w.InnerName]; known && w.Depth == 1 {
		w.items = append(w.items, Item{
			Offset: w.InnerStart, Name: w.InnerName,
			Problem: w.InnerName + " was not executed: it stands inside the block of " + w.Name + ". Refer to commands by name only.",
		})
	}
}

// closed reads an end marker.
func (w *writer) closed() {
	if w.Head == headNaming {
		w.innerBegins()
	}
	w.Head = headNone
	if w.Depth > 0 {
		w.Depth--
		return
	}
	if _, known := table[w.Name]; known {
		w.problem(w.Name + problemInner)
	} else {
		w.problem(unknown(w.Name))
	}
	w.clear()
}
