package codectest

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/turntable-streams/turntable/codec"
)

type suite[T any] struct {
	codec   Codec
	samples []T
}

type fact struct {
	name  string
	check func(require.TestingT)
}

func (s suite[T]) facts() []fact {
	return []fact{
		{"SampleRoundTrips", s.roundTrip},
		{"DecodedEncodesToItsBytes", s.reencode},
		{"NilIsTombstone", s.tombstone},
		{"GarbageIsValueOrPoison", s.garbage},
		{"WrongTypeIsAnError", s.wrongType},
		{"NothingIsModified", s.untouched},
		{"ConcurrentUse", s.concurrent},
		{"ErrorsDoNotQuoteThePayload", s.secrecy},
	}
}

// encodings is how often a sample is encoded. It is enough to detect a format that writes maps in random order.
const encodings = 20

func (s suite[T]) roundTrip(t require.TestingT) {
	for i, sample := range s.samples {
		raw := s.encode(t, sample)
		require.NotNil(t, raw, "sample %d encodes to a tombstone", i)
		d := s.decode(t, bytes.Clone(raw))
		require.NoError(t, d.Err, "sample %d is poison", i)
		require.True(t, equal(sample, d.Value), "sample %d was decoded to %#v", i, d.Value)
		for range encodings {
			require.Equal(t, raw, s.encode(t, sample), "sample %d is not encoded to the same bytes each time", i)
		}
	}
}

func (s suite[T]) reencode(t require.TestingT) {
	for i, sample := range s.samples {
		raw := s.encode(t, sample)
		require.Equal(t, raw, s.encode(t, s.decode(t, bytes.Clone(raw))), "sample %d", i)
	}
	for _, raw := range s.garbled(t) {
		if d := s.decode(t, raw); d.Err != nil {
			require.Equal(t, raw, s.encode(t, d), "poison must encode to its raw bytes")
		}
	}
}

func (s suite[T]) tombstone(t require.TestingT) {
	d := s.decode(t, nil)
	require.True(t, d.Tombstone(), "nil decodes to %#v", d)
	require.Nil(t, s.encode(t, d), "a tombstone must encode to nil")
	require.False(t, s.decode(t, []byte{}).Tombstone(), "a zero-length value must not be a tombstone")
}

func (s suite[T]) garbage(t require.TestingT) {
	for _, raw := range s.garbled(t) {
		d := s.decode(t, raw)
		if d.Err == nil {
			// Encode may return an error for it, but must not panic.
			require.NotPanics(t, func() { _, _ = s.codec.Encode(d.Value) }, "encode the value decoded from %.60q", raw)
			continue
		}
		require.True(t, reflect.ValueOf(&d.Value).Elem().IsZero(), "poison has a value: %#v", d.Value)
		require.NotEmpty(t, d.Err.Error(), "poison must have an error text")
	}
}

// foreign is a type that no codec under test encodes.
type foreign struct{ text string }

func (s suite[T]) wrongType(t require.TestingT) {
	for _, value := range []any{nil, foreign{secret}, &foreign{secret}, codec.Decoded[foreign]{Value: foreign{secret}}} {
		if _, ok := value.(T); ok {
			continue // T is any
		}
		raw, err := s.tryEncode(t, value)
		require.Error(t, err, "encode of a %T", value)
		require.Nil(t, raw, "encode of a %T", value)
		require.NotContains(t, err.Error(), secret)
	}
}

// tryEncode encodes a value for which Encode may return an error, but must not panic.
func (s suite[T]) tryEncode(t require.TestingT, value any) (raw []byte, err error) {
	require.NotPanics(t, func() { raw, err = s.codec.Encode(value) }, "encode of a %T", value)
	return raw, err
}

func (s suite[T]) untouched(t require.TestingT) {
	first := make([]codec.Decoded[T], len(s.samples))
	for i, sample := range s.samples {
		raw := s.encode(t, sample)
		kept := bytes.Clone(raw)
		first[i] = s.decode(t, raw)
		require.Equal(t, kept, raw, "decode modified its input")
	}
	for _, raw := range s.garbled(t) {
		kept := bytes.Clone(raw)
		s.decode(t, raw)
		require.Equal(t, kept, raw, "decode modified its input")
	}
	for i, sample := range s.samples {
		require.True(t, equal(sample, first[i].Value), "a later call modified the decoded sample %d", i)
		raw := s.encode(t, sample)
		kept := bytes.Clone(raw)
		scribble(raw)
		again, err := s.tryEncode(t, sample)
		same := err == nil && bytes.Equal(kept, again)
		scribble(raw) // undo: if memory is shared, the caller's sample must not stay changed
		require.True(t, same, "the encoded bytes of sample %d share memory with it, or differ each time", i)
	}
}

func (s suite[T]) copies(t require.TestingT) {
	for i, sample := range s.samples {
		raw := s.encode(t, sample)
		d := s.decode(t, raw)
		scribble(raw)
		require.True(t, equal(sample, d.Value), "the decoded sample %d shares memory with its bytes", i)
	}
}

func (s suite[T]) recovers(t require.TestingT) {
	d := s.decode(t, []byte(secret))
	require.Error(t, d.Err, "a panic must be poison")
	require.NotContains(t, d.Err.Error(), secret, "the cause quotes the panic")
	// A poison value is encoded without calling the format, a value is not.
	require.Equal(t, []byte(secret), s.encode(t, d))
	var none T
	raw, err := s.tryEncode(t, codec.Decoded[T]{Value: none, Raw: []byte{}})
	require.Error(t, err, "a panic must be an error")
	require.NotContains(t, err.Error(), secret, "the error quotes the panic")
	require.Nil(t, raw)
}

func (s suite[T]) concurrent(t require.TestingT) {
	encoded := make([][]byte, len(s.samples))
	for i, sample := range s.samples {
		encoded[i] = s.encode(t, sample)
	}
	garbled := s.garbled(t)
	const workers, rounds = 8, 20
	failures := make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for round := 0; round < rounds && failures[w] == nil; round++ {
				i := (w + round) % len(s.samples)
				failures[w] = s.both(s.samples[i], encoded[i], garbled[(w*rounds+round)%len(garbled)])
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(failures...))
}

// both encodes and decodes one sample and decodes some garbage, from any goroutine.
func (s suite[T]) both(sample T, encoded, garbage []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	raw, err := s.codec.Encode(sample)
	if err != nil {
		return err
	}
	if !bytes.Equal(raw, encoded) {
		return fmt.Errorf("encoded concurrently to %.60q, sequentially to %.60q", raw, encoded)
	}
	if _, err := s.codec.Decode(garbage); err != nil {
		return err
	}
	value, err := s.codec.Decode(encoded)
	if err != nil {
		return err
	}
	if d, ok := value.(codec.Decoded[T]); !ok || d.Err != nil || !equal(sample, d.Value) {
		return fmt.Errorf("%.60q decoded to %#v", encoded, value)
	}
	return nil
}

func (s suite[T]) secrecy(t require.TestingT) {
	for _, raw := range s.garbled(t) {
		d := s.decode(t, raw)
		if d.Err == nil {
			_, d.Err = s.tryEncode(t, d.Value)
		}
		requireNoSecret(t, d.Err)
	}
}

// requireNoSecret checks every error of the chain, because some loggers print all of them.
func requireNoSecret(t require.TestingT, err error) {
	if err == nil {
		return
	}
	text := fmt.Sprintf("%v %+v", err, err)
	require.NotContains(t, text, secret, "the cause quotes the payload")
	require.NotContains(t, text, secretNumber, "the cause quotes the payload")
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range many.Unwrap() {
			requireNoSecret(t, one)
		}
	}
	requireNoSecret(t, errors.Unwrap(err))
}

func (s suite[T]) encode(t require.TestingT, value any) (raw []byte) {
	var err error
	require.NotPanics(t, func() { raw, err = s.codec.Encode(value) }, "encode")
	require.NoError(t, err)
	return raw
}

// decode decodes raw and checks what must hold for every result of Decode.
func (s suite[T]) decode(t require.TestingT, raw []byte) codec.Decoded[T] {
	var value any
	var err error
	require.NotPanics(t, func() { value, err = s.codec.Decode(raw) }, "decode %.60q", raw)
	require.NoError(t, err, "decode %.60q", raw)
	require.IsType(t, codec.Decoded[T]{}, value)
	d := value.(codec.Decoded[T])
	require.Equal(t, raw, d.Raw, "Decoded.Raw must be the raw bytes")
	return d
}

func equal[T any](a, b T) bool {
	if x, ok := any(a).(interface{ Equal(T) bool }); ok {
		return x.Equal(b)
	}
	x, ok := any(a).(protoadapt.MessageV1)
	if y, same := any(b).(protoadapt.MessageV1); ok && same {
		return proto.Equal(protoadapt.MessageV2Of(x), protoadapt.MessageV2Of(y))
	}
	return reflect.DeepEqual(a, b)
}

func scribble(raw []byte) {
	for i := range raw {
		raw[i] ^= 0xff
	}
}
