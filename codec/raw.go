package codec

import "bytes"

// Bytes returns the codec of raw bytes. It copies when it encodes and decodes; read Decoded.Raw to avoid the copy. No
// value is poison. A zero-length slice is a value, a nil slice encodes to a tombstone.
func Bytes() Codec[[]byte] { return Of[[]byte](bytesFormat{}) }

type bytesFormat struct{}

func (bytesFormat) Marshal(v []byte) ([]byte, error)     { return bytes.Clone(v), nil }
func (bytesFormat) Unmarshal(raw []byte) ([]byte, error) { return bytes.Clone(raw), nil }

// String returns the codec of strings. Bytes are unchanged, and no value is poison, not even invalid UTF-8. A zero-length
// value is the empty string.
func String() Codec[string] { return Of[string](stringFormat{}) }

type stringFormat struct{}

func (stringFormat) Marshal(v string) ([]byte, error)     { return []byte(v), nil }
func (stringFormat) Unmarshal(raw []byte) (string, error) { return string(raw), nil }
