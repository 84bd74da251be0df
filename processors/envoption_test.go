package processors_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/envoption"
)

func TestInvalidValuesAreReportedTogether(t *testing.T) {
	bad := errors.New("bad variable")
	same := func(n int64) int64 { return n }
	variables := []envoption.Variable[int64]{
		{Name: "A", Min: 1, Max: 9, Option: same}, {Name: "B", Min: 1, Max: 9, Option: same}, {Name: "C", Min: 1, Max: 9, Option: same},
	}
	require.Equal(t, []string{"A", "B", "C"}, envoption.Names(variables))
	read := func(values map[string]string) ([]int64, error) {
		return envoption.Options(variables, func(name string) (string, bool) {
			v, ok := values[name]
			return v, ok
		}, bad)
	}
	got, err := read(map[string]string{"A": " 1 ", "B": " ", "C": "9"})
	require.NoError(t, err)
	require.Equal(t, []int64{1, 9}, got)
	_, err = read(map[string]string{"A": "0", "B": "x", "C": "9"})
	require.ErrorIs(t, err, bad)
	require.ErrorContains(t, err, "A: want a whole number from 1 to 9")
	require.ErrorContains(t, err, "B: want")
}

func TestADecimalIsAPositiveNumber(t *testing.T) {
	bad := errors.New("bad variable")
	variables := []envoption.Variable[float64]{{Name: "A", Decimal: func(x float64) float64 { return x }}}
	read := func(value string) ([]float64, error) {
		return envoption.Options(variables, func(string) (string, bool) { return value, true }, bad)
	}
	got, err := read(" 2.50 ")
	require.NoError(t, err)
	require.Equal(t, []float64{2.5}, got)
	for _, value := range []string{"0", "-1", "NaN", "Inf", "1,5", "x"} {
		_, err := read(value)
		require.ErrorIs(t, err, bad, value)
	}
}
