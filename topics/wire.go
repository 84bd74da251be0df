package topics

import "github.com/turntable-streams/turntable/codec"

// wire is the codec.Format of a record type: how its fields are read and written.
type wire[T any] struct {
	// depth is the largest nesting depth of the record.
	depth int
	read  func(*cursor, *T) error
	write func(*writer, T)
}

// Marshal never fails.
func (f wire[T]) Marshal(v T) ([]byte, error) { return encode(v, f.write), nil }

// Unmarshal returns a value that aliases raw.
func (f wire[T]) Unmarshal(raw []byte) (v T, err error) {
	var none T
	err = read(raw, f.depth, func(c *cursor) error {
		v = none
		return f.read(c, &v)
	})
	if err != nil {
		return none, err
	}
	return v, nil
}

// part is Unmarshal for a part of a record, which is nil for null.
func (f wire[T]) part(raw Raw) (v T, err error) {
	if raw == nil {
		return v, ErrNull
	}
	return f.Unmarshal(raw)
}

func (f wire[T]) codec() codec.Codec[T] { return codec.Of[T](f) }
