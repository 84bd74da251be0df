package command

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
		w.items = append(w.items, Item{Offset: w.InnerStart, Name: w.InnerName, Problem: innerProblem(w.InnerName, w.Name)})
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
		w.problem(problemInner)
	} else {
		w.problem(problemUnknown)
	}
	w.clear()
}
