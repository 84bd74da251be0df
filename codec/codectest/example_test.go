package codectest_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/codec/codectest"
)

// celsius is a user's format.
type celsius struct{}

var errCelsius = errors.New("celsius: no temperature")

func (celsius) Marshal(v int) ([]byte, error) { return []byte(strconv.Itoa(v) + "°C"), nil }

func (celsius) Unmarshal(raw []byte) (int, error) {
	var v int
	// The error of Sscanf would quote the payload.
	if _, err := fmt.Sscanf(string(raw), "%d°C", &v); err != nil {
		return 0, errCelsius
	}
	return v, nil
}

// TestCelsius is the test of a user's codec.
func TestCelsius(t *testing.T) {
	codectest.Run(t, codec.Of[int](celsius{}), 0, 21, -40)
	codectest.Copies(t, codec.Of[int](celsius{}), 21)
}

// stamped is a type that embeds a codec.
type stamped[T any] struct{ codec.Codec[T] }

func TestStamped(t *testing.T) {
	codectest.Recovers(t, func(f codec.Format[int]) codectest.Codec { return stamped[int]{codec.Of(f)} })
}

func ExampleRun() {
	temperatures := codec.Of[int](celsius{})
	// In a test of yours, whose t this is:
	_ = func(t *testing.T) {
		codectest.Run(t, temperatures, 0, 21, -40)
		codectest.Copies(t, temperatures, 21)
	}
	fmt.Println(temperatures.Unmarshal([]byte("warm")).Err)
	// Output: celsius: no temperature
}

func ExampleRecovers() {
	// In a test of yours, whose t this is:
	_ = func(t *testing.T) {
		codectest.Recovers(t, func(f codec.Format[int]) codectest.Codec { return stamped[int]{codec.Of(f)} })
	}
	_, err := stamped[int]{}.Encode(21)
	fmt.Println(errors.Is(err, codec.ErrPanic))
	// Output: true
}
