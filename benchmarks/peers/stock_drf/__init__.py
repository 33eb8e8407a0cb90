"""Django REST framework as its documentation describes it: ModelSerializer, CursorPagination, JSONRenderer."""
