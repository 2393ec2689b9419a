"""What every sandbox promises, as checks that run on any backend: alone (`python -m codeenv.sandbox.conformance`), in a
test suite (`plugin`, a pytest plugin), or from a program (`session`). docs/conformance.md says how."""
