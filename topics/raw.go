package topics

import (
	"bytes"
)

// String is the value's JSON text; for nil, null.
func (r Raw) String() string { return string(appendRaw(nil, r)) }

// MarshalJSON implements encoding/json.Marshaler: the value stands in the document as it is. Nil is null.
func (r Raw) MarshalJSON() ([]byte, error) { return appendRaw(nil, r), nil }

// UnmarshalJSON implements encoding/json.Unmarshaler. It copies the value; null is the text null, not nil.
func (r *Raw) UnmarshalJSON(value []byte) error {
	*r = bytes.Clone(value)
	return nil
}

// Elements returns the top-level elements of a JSON array without decoding them; a null element is nil. A nil array has
// none. The elements alias the array.
func Elements(array Raw) ([]Raw, error) {
	if array == nil {
		return nil, nil
	}
	var list []Raw
	err := read(array, MaxDepth, func(c *cursor) error {
		list = nil
		_, err := c.array(func() error {
			v, err := c.value()
			list = append(list, v)
			return err
		}, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Splice joins arrays into one, in order, and leaves null elements out. A value that is no array counts as an array of
// that one value, nil as an empty one. The values must be valid JSON, as all that a codec yields is; their bytes are
// copied, not read, where no element can be null.
func Splice(values ...Raw) Raw {
	n := 2
	for _, v := range values {
		n += len(v) + 1
	}
	joined := append(make(Raw, 0, n), '[')
	for _, v := range values {
		v = bytes.TrimSpace(v)
		if len(v) == 0 || string(v) == "null" {
			continue
		}
		if v[0] != '[' {
			joined = appendElement(joined, v)
			continue
		}
		if !mayHoldNull(v) {
			joined = appendElement(joined, bytes.TrimSpace(v[1:len(v)-1]))
			continue
		}
		elements, _ := Elements(v)
		for _, e := range elements {
			joined = appendElement(joined, e)
		}
	}
	if joined = append(joined, ']'); cap(joined) > 2*len(joined) {
		return bytes.Clone(joined) // whoever keeps it must not keep the room of all the nulls that were left out
	}
	return joined
}

func appendElement(array, element Raw) Raw {
	if len(element) == 0 {
		return array
	}
	if len(array) > 1 {
		array = append(array, ',')
	}
	return append(array, element...)
}

// mayHoldNull reports whether an array may have a null element: one that follows a bracket or a comma. It may be wrong
// about a text or an inner array that looks so; that costs a second look, no more.
func mayHoldNull(array Raw) bool {
	for at := 0; ; {
		i := bytes.Index(array[at:], []byte("null"))
		if i < 0 {
			return false
		}
		before := bytes.TrimRight(array[:at+i], " \t\r\n")
		if b := before[len(before)-1]; b == '[' || b == ',' {
			return true
		}
		at += i + len("null")
	}
}

// Lookup returns the value of an object's own member; ok tells an absent member from one that is null. Of several with
// the same name the last counts. What is no object has no members. The value aliases the object.
func Lookup(object Raw, key string) (value Raw, ok bool) {
	if object == nil {
		return nil, false
	}
	err := read(object, MaxDepth, func(c *cursor) error {
		value, ok = nil, false
		return c.object(func(name []byte) (err error) {
			if string(name) != key {
				return c.skip()
			}
			ok = true
			value, err = c.value()
			return err
		})
	})
	if err != nil {
		return nil, false
	}
	return value, ok
}
