package source

import (
	"errors"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Root is the folder of the module that the current folder lies in.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("there is no go.mod in the current folder or above it: run this inside the module")
		}
		dir = up
	}
}

// Depend makes the result of the test that calls it depend on every file of the module.
// A program that a test builds or starts is not among what the test imports, so that go
// test would answer with the result of an older program out of its cache; it does look at
// which files a test looked at.
func Depend() error {
	root, err := Root()
	if err != nil {
		return err
	}
	return files(root, func(path string) error {
		_, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) { // another test's, taken away meanwhile
			return nil
		}
		return err
	})
}

// Imports lists the packages of the module in root and what each imports, on any system
// and with tests left out. A package is named by its folder; that in root is "".
func Imports(root string) (map[string][]string, error) {
	all := map[string][]string{}
	err := files(root, func(path string) error {
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(filepath.ToSlash(dir), ".")
		imports := all[name]
		for _, s := range f.Imports {
			imp, err := strconv.Unquote(s.Path.Value)
			if err != nil {
				return err
			}
			imports = append(imports, imp)
		}
		slices.Sort(imports)
		all[name] = slices.Compact(imports)
		return nil
	})
	return all, err
}

// files calls fn with the path of every file of the module in root. What the go command
// leaves out is left out: folders whose names begin with a dot or an underscore, and
// other modules; so is what make builds.
func files(root string, fn func(path string) error) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			return fn(path)
		}
		if path == root {
			return nil
		}
		if strings.ContainsAny(d.Name()[:1], "._") || d.Name() == "node_modules" || path == filepath.Join(root, "bin") {
			return fs.SkipDir
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
			return fs.SkipDir
		}
		return nil
	})
}
