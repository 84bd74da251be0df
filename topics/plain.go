package topics

import "unicode/utf8"

// plain is the format of a topic whose values are text, not JSON. An empty text is a value.
type plain struct{}

// Marshal never fails.
func (plain) Marshal(v string) ([]byte, error) { return []byte(v), nil }

// Unmarshal refuses what is no UTF-8.
func (plain) Unmarshal(raw []byte) (string, error) {
	if !utf8.Valid(raw) {
		return "", ErrUTF8
	}
	return string(raw), nil
}
