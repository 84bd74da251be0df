package topics

import "strings"

// Text returns the readable text of a message's content: the text of a string, or the literal of a number or a boolean. For
// an array it returns the text blocks joined by blank lines; strings count as text blocks, blank blocks and blocks of other
// types are skipped. It returns the empty string for nil, an object and bytes that are not JSON.
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

// block reads an element of a content array and returns its text, empty if it is not a text block.
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

// TextOf returns a value as Java prints it into a text field: the text of a string, nil for null, the literal of a
// number or a boolean, the JSON of an object or an array.
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
