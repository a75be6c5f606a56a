//go:build !linux

package app

func playInit() { panic("only Linux lets a process with any number inherit orphans") }
