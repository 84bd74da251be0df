package store_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/store"
)

const writerPath = "TURNTABLE_TEST_STORE"

// writeForEver writes cuts until it is killed: five rows a cut, all saying which, most cuts larger than a block of
// LevelDB's journal. It prints the number of each cut that it flushed.
func writeForEver(path string) error {
	s, err := store.Open(path)
	if err != nil {
		return err
	}
	if err = s.MarkRecovered(); err != nil {
		return err
	}
	at, err := s.GetOffset(-1)
	if err != nil {
		return err
	}
	for cut := at + 1; ; cut++ {
		for row := range int64(5) {
			value := bytes.Repeat(fmt.Append(nil, cut, " "), int(cut%7*row)*1000+1)
			if err = s.Set(fmt.Sprint(row), value); err != nil {
				return err
			}
		}
		if err = s.SetOffset(cut); err != nil {
			return err
		}
		s.Seal()
		if err = s.Flush(); err != nil {
			return err
		}
		fmt.Println(cut)
	}
}

func TestKilledProcessLeavesWholeCutsAndEveryFlushedOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.0")
	last := int64(-1)
	for round := range 12 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), writerPath+"="+path)
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		lines := bufio.NewScanner(out)
		for range 3 + round*5 {
			require.True(t, lines.Scan())
		}
		require.NoError(t, child.Process.Kill())
		for ok := true; ok; ok = lines.Scan() {
			if n, err := strconv.ParseInt(lines.Text(), 10, 64); err == nil {
				last = n
			}
		}
		require.Error(t, child.Wait())

		s := opened(t, path)
		reached := offset(t, s)
		require.GreaterOrEqual(t, reached, last)
		got := rows(t, s)
		require.Len(t, got, 5)
		for k, v := range got {
			require.Equal(t, fmt.Sprint(reached), v[:bytes.IndexByte([]byte(v), ' ')], "row %s", k)
		}
		require.NoError(t, s.Close())
	}
}
