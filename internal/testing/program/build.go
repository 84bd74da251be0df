package program

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// Build builds examples into a directory. The root is that of the module.
func Build(root, dir string, examples ...string) error {
	args := []string{"build", "-o", dir + string(filepath.Separator)}
	for _, e := range examples {
		args = append(args, "./examples/"+e)
	}
	c := exec.Command("go", args...)
	c.Dir = root
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, out)
	}
	return nil
}
