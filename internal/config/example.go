package config

import (
	"embed"
	"io/fs"
	"strings"
)

//go:embed example
var example embed.FS

const exampleRoot = "example"

// Example is the placet.yaml that `placet init` writes. Its tools are those of [ExampleFiles].
func Example() []byte {
	b, err := example.ReadFile(exampleRoot + "/" + DefaultName)
	if err != nil {
		panic(err) // it is embedded
	}
	return b
}

// ExampleFiles are the programs that [Example] names, by their path from its folder.
// They need only sh, and are to be written with mode 0755.
func ExampleFiles() map[string][]byte {
	files := map[string][]byte{}
	err := fs.WalkDir(example, exampleRoot, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, exampleRoot+"/")
		if err != nil || d.IsDir() || name == DefaultName {
			return err
		}
		files[name], err = example.ReadFile(path)
		return err
	})
	if err != nil {
		panic(err) // they are embedded
	}
	return files
}
