//go:build !unix

package relay

import "os/exec"

// group does nothing where there are no process groups: the program itself is killed when the context ends.
func group(*exec.Cmd) {}

func endGroup(*exec.Cmd) {}
