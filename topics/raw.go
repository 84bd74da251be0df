package topics

import (
	"bytes"
)

// String returns the value's JSON text, "null" for nil.
func (r Raw) String() string { return string(appendRaw(nil, r)) }

// MarshalJSON implements encoding/json.Marshaler. It returns the value unchanged, null for nil.
func (r Raw) MarshalJSON() ([]byte, error) { return appendRaw(nil, r), nil }

// UnmarshalJSON implements encoding/json.Unmarshaler. It copies the value. JSON null becomes Raw("null"), not nil.
func (r *Raw) UnmarshalJSON(value []byte) error {
	*r = bytes.Clone(value)
	return nil
}

// Elements returns the top-level elements of a JSON array without decoding them; a null element is nil. For a nil array it
// returns nil. The elements alias the array.
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

// Splice concatenates arrays into one and omits null elements. A value that is not an array is treated as an array with
// that one element, nil as an empty array. The values must be valid JSON, as decoded values are: Splice does not validate
// them.
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
		return bytes.Clone(joined) // release the space of the omitted nulls
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

// mayHoldNull reports whether an array may have a null element: the word null after a bracket or a comma. It may return
// true because of a string or an inner array; Splice then only takes its slower path.
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

// Lookup returns the value of a top-level member of an object, and whether the member exists; a member that is null is nil
// and true. If the name is repeated, the last member counts. For a value that is not an object it returns nil and false.
// The result aliases the object.
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

// LookupAll returns the values of several top-level members of an object, in the order of the keys, in one pass over the
// object. A value is nil if the member does not exist or is null. If a name is repeated, the last member counts. For a value
// that is not an object all are nil. The results alias the object.
func LookupAll(object Raw, keys ...string) []Raw {
	values := make([]Raw, len(keys))
	if object == nil {
		return values
	}
	err := read(object, MaxDepth, func(c *cursor) error {
		clear(values)
		return c.object(func(name []byte) (err error) {
			for i, key := range keys {
				if string(name) == key {
					values[i], err = c.value()
					return err
				}
			}
			return c.skip()
		})
	})
	if err != nil {
		clear(values)
	}
	return values
}
