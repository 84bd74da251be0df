package command

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// finish ends a complete block.
func (w *writer) finish() {
	item := Item{Offset: w.Start, Name: w.Name}
	if item.Payload, item.Problem = judge(w.Name, w.Payload); item.Payload != nil || item.Problem != "" {
		w.items = append(w.items, item)
	}
	w.clear()
}

// judge returns the payload of a complete block, or what is wrong with the block, or neither for a block that is of the crew
// itself and that the agent repeats.
func judge(name string, text []byte) (topics.Raw, string) {
	if name == "CREW_UPDATE" || name == "CREW_ROSTER" {
		return nil, ""
	}
	spec, known := table[name]
	switch {
	case !known:
		return nil, problemUnknown(name)
	case spec.refusal != "":
		return nil, spec.refusal
	case text == nil && spec.payload:
		return nil, fmt.Sprintf("%s error: the payload is missing.%s", name, example(spec))
	case text == nil:
		return topics.Raw("{}"), ""
	}
	value := jsontext.Value(bytes.ToValidUTF8(text, []byte("\uFFFD")))
	if err := value.Compact(); err != nil {
		return nil, problemJSON(name)
	}
	payload := topics.Raw(value)
	if _, err := Decode(name, payload); err != nil {
		return nil, err.Error() + "." + example(spec)
	}
	return payload, ""
}

// problem reports the block once.
func (w *writer) problem(text func(name string) string) {
	if w.Reported {
		return
	}
	w.Reported = true
	w.items = append(w.items, Item{Offset: w.Start, Name: w.Name, Problem: text(w.Name)})
}

func problemUnknown(name string) string {
	return fmt.Sprintf("Unknown command %s. Nothing was executed.\n\n%s", name, Help())
}

func problemJSON(name string) string {
	return fmt.Sprintf("%s error: invalid JSON payload. Write line breaks in strings as \\n and quotes as \\\".%s", name, example(table[name]))
}

func problemEnd(name string) string {
	return fmt.Sprintf("%s error: ⟧⟧ must follow the payload. Nothing was executed.%s", name, example(table[name]))
}

func problemInner(name string) string {
	return fmt.Sprintf("%s error: the block contains another block. Refer to commands by name only. Nothing was executed.", name)
}

func problemLong(name string) string {
	return fmt.Sprintf("%s error: the block is longer than %d characters or has no ⟧⟧. Nothing in it was executed.", name, MaxBlock)
}

func innerProblem(inner, outer string) string {
	return fmt.Sprintf("%s was not executed: it stands inside the block of %s. Refer to commands by name only.", inner, outer)
}

// example returns the sentence that shows a command, or nothing for a name that is no command.
func example(spec spec) string {
	if spec.example == "" {
		return ""
	}
	return " Example: " + spec.example
}
