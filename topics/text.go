package topics

import "strings"

// Text is what a reader sees of a message's content: a string as it is, a number or a boolean by its literal, of an
// array its text blocks joined by blank lines (D-44; blocks of other types and blank ones are left out, strings count
// as text blocks). Nil, objects and what is no JSON have no text.
func Text(content Raw) string {
	if content == nil {
		return ""
	}
	var text string
	err := read(content, MaxDepth, func(c *cursor) (err error) {
		text = ""
		switch c.dec.PeekKind() {
		case '[':
			var blocks []string
			_, err = c.array(func() error {
				block, err := c.block()
				if strings.TrimSpace(block) != "" {
					blocks = append(blocks, block)
				}
				return err
			}, nil)
			text = strings.Join(blocks, "\n\n")
		case '{':
			err = c.skip()
		default:
			text, err = c.word()
		}
		return err
	})
	if err != nil {
		return ""
	}
	return text
}

// block reads an element of a content array: its text, if it is a text block.
func (c *cursor) block() (string, error) {
	switch c.dec.PeekKind() {
	case '"':
		return c.word()
	case '{':
	default:
		return "", c.skip()
	}
	var kind, text string
	err := c.object(func(name []byte) (err error) {
		switch {
		case string(name) == "type" && c.dec.PeekKind() == '"':
			kind, err = c.word()
		case string(name) == "text" && c.dec.PeekKind() == '"':
			text, err = c.word()
		default:
			err = c.skip()
		}
		return err
	})
	if kind != "text" {
		text = ""
	}
	return text, err
}

// TextOf is a value as Java prints it into a text field: a string without its quotes, null as nil, the other scalars by
// their literal; of an object or an array, its JSON.
func TextOf(value Raw) *string {
	if value == nil {
		return nil
	}
	var text *string
	err := read(value, MaxDepth, func(c *cursor) (err error) {
		text, err = c.text()
		return err
	})
	if err != nil {
		s := string(value)
		return &s
	}
	return text
}
