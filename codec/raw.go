package codec

import "bytes"

// Bytes returns the codec of raw bytes. It copies in both directions, and nothing is poison for it; who wants no copy
// reads Decoded.Raw. Zero length is a value; a nil slice encodes to a tombstone.
func Bytes() Codec[[]byte] { return Of[[]byte](bytesFormat{}) }

type bytesFormat struct{}

func (bytesFormat) Marshal(v []byte) ([]byte, error)     { return bytes.Clone(v), nil }
func (bytesFormat) Unmarshal(raw []byte) ([]byte, error) { return bytes.Clone(raw), nil }

// String returns the codec of strings, byte for byte: nothing is poison for it, invalid UTF-8 neither. Zero length is
// the empty string.
func String() Codec[string] { return Of[string](stringFormat{}) }

type stringFormat struct{}

func (stringFormat) Marshal(v string) ([]byte, error)     { return []byte(v), nil }
func (stringFormat) Unmarshal(raw []byte) (string, error) { return string(raw), nil }
