package envoption_test

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
	require.ErrorContains(t, err, `A="0"`)
	require.ErrorContains(t, err, `B="x"`)
}
